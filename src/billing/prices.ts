import type { Plan } from '../accounts/plans.ts';
import { describeError, type Logger } from '../base/log.ts';
import { checkPrices, PriceError, type PriceSettings } from './check-prices.ts';
import { PaymentError, type PaymentProvider } from './payment-provider.ts';
import type { Meters } from './tell-metered.ts';

export interface PricesComponents {
  readonly provider: Pick<PaymentProvider, 'price' | 'meter'>;
  readonly logger: Logger;
}

/** The prices at the payment provider. They are held against the plan once, and nothing is sold before they were found right. */
export class Prices {
  readonly #components: PricesComponents;
  readonly #settings: PriceSettings;
  readonly #plan: Plan;
  #meters: Promise<Meters> | null = null;

  constructor(components: PricesComponents, settings: PriceSettings, plan: Plan) {
    this.#components = components;
    this.#settings = settings;
    this.#plan = plan;
  }

  /** Throws PriceError where one is not what the plan says. Where the provider can't be asked that is found out later. */
  async checkAtStart(): Promise<void> {
    try {
      await this.#checked();
    } catch (error) {
      if (error instanceof PriceError) throw error;
      const sentence =
        'the prices at the payment provider could not be checked: nobody can subscribe before they are';
      this.#components.logger.error(sentence, { error: describeError(error) });
    }
  }

  /** Throws PaymentError. */
  async meters(): Promise<Meters> {
    try {
      return await this.#checked();
    } catch (cause) {
      if (!(cause instanceof PriceError)) throw cause;
      const { logger } = this.#components;
      logger.error('a price at the payment provider is not what the plans say', { error: cause.message });
      const sentence = 'paid plans are not set up as they should be: tell the operator';
      throw new PaymentError(sentence, { answered: true, refused: false, cause });
    }
  }

  /** All that a subscription has, the plan's own first. Throws PaymentError. */
  async ids(): Promise<readonly string[]> {
    await this.meters();
    const { priceId, usagePrices } = this.#settings;
    return [priceId, ...Object.values(usagePrices).map(({ price }) => price)];
  }

  #checked(): Promise<Meters> {
    const { provider } = this.#components;
    this.#meters ??= checkPrices(provider, this.#settings, this.#plan).catch((cause: unknown) => {
      this.#meters = null;
      throw cause;
    });
    return this.#meters;
  }
}
