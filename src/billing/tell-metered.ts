import { limits } from '../../protocol/limits.ts';
import { type MeteredPart, meteredParts } from '../accounts/billing.ts';
import { hourMs } from '../accounts/usage.ts';
import { describeError } from '../base/log.ts';
import { type BillingRecord, type MeteredHour, readBilling, updateBilling } from './billing-record.ts';
import { PaymentError } from './payment-provider.ts';
import { planMetered } from './plan-metered.ts';
import { consequences } from './subscription-state.ts';
import type { SubscriptionsComponents } from './subscriptions.ts';

/** A meter of the payment provider. */
export interface PartMeter {
  readonly id: string;
  readonly eventName: string;
}
export type Meters = ReadonlyMap<MeteredPart, PartMeter>;

export interface TellComponents extends SubscriptionsComponents {
  /** The meters; a part that costs nothing may have none. Throws where they are not known to be right. */
  readonly meters: () => Promise<Meters>;
}

/**
 * Tells the meters what a tenant has used, each hour and part once:
 *
 * 1. The usage is made durable, then planned (plan-metered.ts), and the plan is stored, by compare-and-set: of several servers one has
 *    planned an hour, and no crash plans it again.
 * 2. Before an hour is sent, that it is about to be is stored.
 * 3. It is sent, with an identifier made of tenant, part and hour. The provider takes an identifier once within a day.
 * 4. That it was is stored: it leaves the record.
 *
 * A crash after 2 leaves an hour that may be there already. Within a day it is sent again, and the provider knows the identifier. After
 * that the provider has forgotten it and is asked what it has of this hour, of which there is one event or none; and then
 * begins a new day.
 */
export async function tellMetered(
  components: TellComponents,
  tenantId: number,
  { isLast = false }: { readonly isLast?: boolean } = {},
): Promise<void> {
  await plan(components, tenantId, isLast);
  await send(components, tenantId);
}

async function plan(components: TellComponents, tenantId: number, isLast: boolean): Promise<void> {
  const { objectStore, tenants } = components;
  const { subscription } = await readBilling(objectStore, tenantId);
  if (subscription === null) return;
  const metered = await tenants.meteredUsage(tenantId);
  if (metered === null) return;
  await updateBilling(components, tenantId, (record) => {
    if (record.subscription === null) return record;
    const { told, subscription } = record;
    // What nobody pays for is not told.
    if (consequences[subscription.state].status === 'none') return record;
    const next = planMetered({ told, subscription, metered, isLast });
    return next === told ? record : { ...record, told: next };
  });
}

async function send(components: TellComponents, tenantId: number): Promise<void> {
  const { clock, objectStore } = components;
  let record = await readBilling(objectStore, tenantId);
  for (const { hourAt } of record.told?.hours ?? []) {
    const nowMs = clock.now();
    const hour = hourOf(record, hourAt);
    if (hour === undefined) continue;
    const known = await whatIsThere(components, record, hour);
    if (hour.firstSentAt === null || known !== null) {
      // Another server may be at it: then this one goes on from what is stored.
      record = await change(components, tenantId, hour, {
        ...hour,
        units: without(hour.units, known),
        firstSentAt: nowMs,
      });
    }
    const due = hourOf(record, hourAt);
    if (due === undefined) continue;
    if (await sendHour(components, { tenantId, customerId: record.customerId ?? '', hour: due }))
      record = await change(components, tenantId, due, null);
  }
}

/** Parts of an hour that the provider has; null where it need not be asked, since it still knows identifiers. */
async function whatIsThere(
  { clock, provider, meters }: TellComponents,
  { customerId }: BillingRecord,
  { hourAt, firstSentAt, units }: MeteredHour,
): Promise<readonly MeteredPart[] | null> {
  // One that was never sent and is as old may have been sent by a server whose store was restored since.
  const sentAt = firstSentAt ?? hourAt;
  if (customerId === null || clock.now() < sentAt + limits.meterIdentifierKeptMs) return null;
  const all = await meters();
  const there: MeteredPart[] = [];
  for (const part of partsOf(units)) {
    const meterId = all.get(part)?.id;
    if (meterId === undefined) continue;
    const span = { meterId, customerId, fromMs: hourAt, toMs: hourAt + hourMs };
    if ((await provider.meteredValue(span)) > 0) there.push(part);
  }
  return there;
}

/** True where all of it is told, or never will be. Throws where the provider cannot be reached. */
async function sendHour(
  { clock, logger, provider, meters }: TellComponents,
  {
    tenantId,
    customerId,
    hour,
  }: { readonly tenantId: number; readonly customerId: string; readonly hour: MeteredHour },
): Promise<boolean> {
  const { hourAt, eventsAt: atMs, units } = hour;
  if (clock.now() > hourAt + limits.meterEventsTakenMs) {
    logger.error('usage is too old to be billed, and is given up', {
      tenantId,
      hour: hourAt,
      parts: partsOf(units).join(),
    });
    return true;
  }
  const all = await meters();
  let isDone = true;
  for (const part of partsOf(units)) {
    const eventName = all.get(part)?.eventName;
    // What costs nothing has no meter.
    if (eventName === undefined) continue;
    const identifier = meterIdentifier({ tenantId, part, hourAt });
    try {
      await provider.tellMeter({ part, eventName, customerId, units: units[part] ?? 0, identifier, atMs });
    } catch (error) {
      if (!(error instanceof PaymentError) || !error.refused) throw error;
      logger.error('a meter refuses usage: it is told again', {
        tenantId,
        identifier,
        error: describeError(error.cause),
      });
      isDone = false;
    }
  }
  return isDone;
}

/** The same whenever it is made. */
export function meterIdentifier({
  tenantId,
  part,
  hourAt,
}: {
  readonly tenantId: number;
  readonly part: MeteredPart;
  readonly hourAt: number;
}): string {
  return `tidebase-${tenantId}-${part}-${new Date(hourAt).toISOString().slice(0, 13)}`;
}

function hourOf({ told }: BillingRecord, hourAt: number): MeteredHour | undefined {
  return told?.hours.find((each) => each.hourAt === hourAt);
}

/** Stores another state of an hour in place of the one that was read; null: it is done. */
function change(
  components: TellComponents,
  tenantId: number,
  before: MeteredHour,
  after: MeteredHour | null,
): Promise<BillingRecord> {
  return updateBilling(components, tenantId, (record) => {
    const { told } = record;
    const known = hourOf(record, before.hourAt);
    if (told === null || known === undefined) return record;
    if (after !== null && known.firstSentAt !== before.firstSentAt) return record;
    const hours = told.hours.flatMap((each) => (each !== known ? [each] : after === null ? [] : [after]));
    return { ...record, told: { ...told, hours } };
  });
}

function partsOf(units: MeteredHour['units']): MeteredPart[] {
  return meteredParts.filter((part) => (units[part] ?? 0) > 0);
}

function without(units: MeteredHour['units'], parts: readonly MeteredPart[] | null): MeteredHour['units'] {
  return Object.fromEntries(Object.entries(units).filter(([part]) => !parts?.includes(part as MeteredPart)));
}
