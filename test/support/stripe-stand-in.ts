/**
 * A stand-in for Stripe's HTTP interface, written from its published description: what billing uses of it, with its rules for
 * idempotency keys, identifiers of usage, drafts of invoices and signed events, over a clock that a test moves. It fails as it is told
 * to. `openStripe` takes it for the network (`httpClient`); stripe-server.ts serves it on a port.
 */
import { createHmac } from 'node:crypto';
import { monthsAfter } from '../../src/accounts/billing-period.ts';
import {
  customerObject,
  type Fields,
  invoiceObject,
  list,
  meterObject,
  type PriceParts,
  portalObject,
  priceObject,
  sessionObject,
  subscriptionObject,
} from './stripe-objects.ts';
import {
  centsOf,
  decodeForm,
  type Exchange,
  type Fault,
  invalid,
  missing,
  Refusal,
  type StoredInvoice,
  type StoredSubscription,
  type TakenMeterEvent,
  templateOf,
} from './stripe-wire.ts';

const dayS = 86_400;

export class StripeStandIn {
  nowMs: number;
  readonly customers = new Map<string, Fields>();
  readonly sessions = new Map<string, Fields>();
  readonly subscriptions = new Map<string, StoredSubscription>();
  readonly invoices = new Map<string, StoredInvoice>();
  readonly prices = new Map<string, PriceParts>();
  readonly meters = new Map<string, string>();
  readonly meterEvents: TakenMeterEvent[] = [];
  readonly events: { readonly id: string; readonly type: string; readonly body: string }[] = [];
  /** All that was asked and answered. */
  readonly exchanges: Exchange[] = [];
  /** Decides how a request fails; undefined: it does not. */
  fault: (operation: string) => Fault | undefined = () => undefined;
  /** Whether cards are good. */
  pays = true;
  /** Where its pages are. */
  pagesUrl = 'https://checkout.stripe.example';
  /** Where its last portal leads back to. */
  returnUrl = '';
  readonly #keys = new Map<string, { at: number; body: string; status: number; answer: unknown }>();
  /** Identifiers of usage, and when they were seen last. */
  readonly #identifiers = new Map<string, number>();
  #count = 0;

  constructor(nowMs: number) {
    this.nowMs = nowMs;
  }

  get #now(): number {
    return Math.floor(this.nowMs / 1_000);
  }

  #id(prefix: string): string {
    this.#count += 1;
    return `${prefix}_${String(this.#count).padStart(6, '0')}`;
  }

  addPrice(price: PriceParts): void {
    this.prices.set(price.id, price);
    if (price.meter !== undefined) this.meters.set(price.meter, price.meter.replace(/^mtr_/, ''));
  }

  /** `path` with its query. Null: there will be no answer. */
  ask(method: string, path: string, body: string, headers: Readonly<Record<string, string>>) {
    const [bare = '', query = ''] = path.split('?');
    const params = decodeForm(method === 'GET' || method === 'DELETE' ? query || body : body);
    const operation = `${method} ${templateOf(bare)}`;
    const fault = this.fault(operation);
    if (fault === 'no-answer') return null;
    if (fault === 'garbage') return { status: 200, text: '<html>It works!</html>', requestId: 'req_0' };
    const key = headers['idempotency-key'];
    const outcome = this.#once(method === 'POST' ? key : undefined, `${path}\n${body}`, () =>
      typeof fault === 'number'
        ? {
            status: fault,
            answer: {
              error: { type: fault === 429 ? 'invalid_request_error' : 'api_error', message: 'told to fail' },
            },
          }
        : this.#answer(operation, bare, params),
    );
    this.exchanges.push({ operation, request: params, ...outcome });
    if (fault === 'lost-answer') return null;
    return { status: outcome.status, text: JSON.stringify(outcome.answer), requestId: this.#id('req') };
  }

  /** The answer to a key is the same for a day, failures that came while it was worked on too; after that the key is forgotten. */
  #once(key: string | undefined, body: string, work: () => { status: number; answer: unknown }) {
    const known = key === undefined ? undefined : this.#keys.get(key);
    if (known !== undefined && this.nowMs < known.at + dayS * 1_000) {
      if (known.body === body) return { status: known.status, answer: known.answer };
      const error = {
        type: 'idempotency_error',
        message: 'Keys for idempotent requests can only be used with the same parameters.',
      };
      return { status: 400, answer: { error } };
    }
    const done = work();
    // What is refused before it begins is not kept.
    if (key !== undefined && done.status !== 429 && (done.status < 400 || done.status >= 500))
      this.#keys.set(key, { at: this.nowMs, body, ...done });
    return done;
  }

  #answer(operation: string, path: string, params: Fields): { status: number; answer: unknown } {
    const id =
      path.split('/')[operation.includes('/checkout/') || operation.includes('/billing/') ? 4 : 3] ?? '';
    try {
      return { status: 200, answer: this.#do(operation, id, params) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, code, message } = error;
      return { status, answer: { error: { type: 'invalid_request_error', code, message } } };
    }
  }

  #do(operation: string, id: string, params: Fields): unknown {
    switch (operation) {
      case 'POST /v1/customers': {
        const made = this.#id('cus');
        this.customers.set(made, customerObject(made, this.#now, params));
        return this.customers.get(made);
      }
      case 'POST /v1/checkout/sessions':
        return this.#createSession(params);
      case 'GET /v1/checkout/sessions/{id}':
        return this.#session(id);
      case 'POST /v1/checkout/sessions/{id}/expire': {
        const session = this.#session(id);
        if (session.status !== 'open') throw invalid('Only open sessions can be expired.');
        return Object.assign(session, { status: 'expired', url: null });
      }
      case 'POST /v1/billing_portal/sessions':
        this.#customer(params.customer);
        this.returnUrl = String(params.return_url);
        return portalObject({
          id: this.#id('bps'),
          created: this.#now,
          customer: params.customer,
          return_url: this.returnUrl,
          url: `${this.pagesUrl}/portal/${String(params.customer)}`,
        });
      case 'GET /v1/subscriptions': {
        this.#customer(params.customer);
        const own = [...this.subscriptions.values()].filter(({ customer }) => customer === params.customer);
        return list(
          '/v1/subscriptions',
          own.reverse().map((each) => this.subscriptionAsTold(each)),
        );
      }
      case 'GET /v1/subscriptions/{id}':
        return this.subscriptionAsTold(this.subscription(id));
      case 'DELETE /v1/subscriptions/{id}': {
        const known = this.subscription(id);
        if (known.state === 'canceled') throw missing(id);
        this.end(known, this.#now);
        return this.subscriptionAsTold(known);
      }
      case 'GET /v1/invoices': {
        const own = [...this.invoices.values()].filter(
          ({ subscription, status }) => subscription === params.subscription && status === params.status,
        );
        return list(
          '/v1/invoices',
          own.map((each) => this.#invoiceAsTold(each)),
        );
      }
      case 'GET /v1/prices/{id}': {
        const price = this.prices.get(id);
        if (price === undefined) throw missing(id);
        return priceObject(price);
      }
      case 'GET /v1/billing/meters/{id}': {
        const eventName = this.meters.get(id);
        if (eventName === undefined) throw missing(id);
        return meterObject(id, eventName);
      }
      case 'GET /v1/billing/meters/{id}/event_summaries':
        return this.#summaries(id, params);
      case 'POST /v1/billing/meter_events':
        return this.#takeMeterEvent(params);
      default:
        throw new Refusal(404, 'url_invalid', `Unrecognized request URL (${operation})`);
    }
  }

  #customer(id: unknown): Fields {
    const known = this.customers.get(String(id));
    if (known === undefined) throw missing(id);
    return known;
  }

  #session(id: string): Fields {
    const session = this.sessions.get(id);
    if (session === undefined) throw missing(id);
    if (session.status === 'open' && this.#now >= Number(session.expires_at))
      Object.assign(session, { status: 'expired', url: null });
    return session;
  }

  subscription(id: string): StoredSubscription {
    const known = this.subscriptions.get(id);
    if (known === undefined) throw missing(id);
    return known;
  }

  subscriptionAsTold(known: StoredSubscription): Fields {
    const prices = known.prices.map((id) => priceObject(this.prices.get(id) as PriceParts));
    return subscriptionObject(known, prices);
  }

  #createSession(params: Fields): Fields {
    this.#customer(params.customer);
    const expires = Number(params.expires_at);
    if (expires < this.#now + 1_800 || expires > this.#now + dayS)
      throw invalid('expires_at must be between 30 minutes and 24 hours.');
    const data = params.subscription_data as Fields;
    const anchor = Number(data.billing_cycle_anchor);
    if (anchor <= this.#now) throw invalid('billing_cycle_anchor must be in the future.');
    const id = this.#id('cs');
    const prices = (params.line_items as Fields[]).map(({ price }) => String(price));
    for (const price of prices) if (!this.prices.has(price)) throw missing(price);
    const session = sessionObject({
      id,
      created: this.#now,
      customer: params.customer,
      client_reference_id: params.client_reference_id ?? null,
      expires_at: expires,
      metadata: params.metadata ?? {},
      success_url: params.success_url,
      cancel_url: params.cancel_url ?? null,
      status: 'open',
      url: `${this.pagesUrl}/pay/${id}`,
    });
    // What the page makes of it is no part of what is told of a session.
    Object.defineProperty(session, 'order', {
      value: { anchor, prices, metadata: data.metadata ?? {} },
      enumerable: false,
    });
    this.sessions.set(id, session);
    return session;
  }

  /** A person pays on the page. */
  complete(sessionId: string): StoredSubscription {
    const session = this.#session(sessionId);
    if (session.status !== 'open') throw invalid('The session is not open.');
    const { anchor, prices, metadata } = (session as { order?: unknown }).order as {
      anchor: number;
      prices: string[];
      metadata: Fields;
    };
    const subscription: StoredSubscription = {
      id: this.#id('sub'),
      customer: String(session.customer),
      metadata,
      created: this.#now,
      prices,
      anchor,
      period: { start: this.#now, end: anchor },
      state: 'active',
      cancelAtPeriodEnd: false,
      endedAt: null,
      latestInvoice: null,
    };
    this.subscriptions.set(subscription.id, subscription);
    Object.assign(session, { status: 'complete', url: null, subscription: subscription.id });
    this.tell('checkout.session.completed', session);
    this.tellOf(subscription, 'customer.subscription.created');
    return subscription;
  }

  tellOf(subscription: StoredSubscription, type = 'customer.subscription.updated'): void {
    this.tell(type, this.subscriptionAsTold(subscription));
  }

  /** Keeps an event, to be delivered by whoever tests. */
  tell(type: string, object: Fields): void {
    const id = this.#id('evt');
    const event = {
      id,
      object: 'event',
      api_version: '2026-10-28.endive',
      created: this.#now,
      livemode: false,
      pending_webhooks: 1,
      request: null,
      type,
      data: { object },
    };
    this.events.push({ id, type, body: JSON.stringify(event) });
  }

  end(subscription: StoredSubscription, at: number): void {
    Object.assign(subscription, { state: 'canceled', endedAt: at, cancelAtPeriodEnd: false });
    this.#invoice(subscription, { from: subscription.period.start, to: at, baseCents: 0 });
    this.tellOf(subscription, 'customer.subscription.deleted');
  }

  #takeMeterEvent(params: Fields): Fields {
    const { stripe_customer_id: customer, value } = params.payload as Fields;
    const [timestamp, identifier] = [Number(params.timestamp), String(params.identifier)];
    if (timestamp < this.#now - 35 * dayS || timestamp > this.#now + 300)
      throw invalid('timestamp must be within the past 35 days.');
    if (!/^[0-9]+$/.test(String(value)) || identifier.length > 100)
      throw invalid('value must be a whole number.');
    this.#customer(customer);
    if (![...this.meters.values()].includes(String(params.event_name))) throw invalid('no active meter');
    const takenAt = this.#identifiers.get(identifier);
    this.#identifiers.set(identifier, this.#now);
    if (takenAt !== undefined && this.#now < takenAt + dayS)
      throw new Refusal(
        400,
        'duplicate_meter_event',
        `An event already exists with identifier ${identifier}.`,
      );
    const eventName = String(params.event_name);
    this.meterEvents.push({
      eventName,
      customer: String(customer),
      value: Number(value),
      identifier,
      timestamp,
      receivedAt: this.#now,
    });
    return {
      object: 'billing.meter_event',
      created: this.#now,
      event_name: eventName,
      identifier,
      livemode: false,
      payload: params.payload,
      timestamp,
    };
  }

  #sum(eventName: string | undefined, customer: unknown, from: number, to: number): number {
    return this.meterEvents
      .filter(
        (each) =>
          each.eventName === eventName &&
          each.customer === customer &&
          each.timestamp >= from &&
          each.timestamp < to,
      )
      .reduce((sum, { value }) => sum + value, 0);
  }

  #summaries(id: string, params: Fields): Fields {
    const [start, end] = [Number(params.start_time), Number(params.end_time)];
    if (start % 60 !== 0 || end % 60 !== 0)
      throw invalid('start_time and end_time must be aligned with minutes.');
    const aggregated_value = this.#sum(this.meters.get(id), params.customer, start, end);
    const summary = {
      id: this.#id('mtrusg'),
      object: 'billing.meter_event_summary',
      aggregated_value,
      start_time: start,
      end_time: end,
      livemode: false,
      meter: id,
    };
    return list(`/v1/billing/meters/${id}/event_summaries`, aggregated_value === 0 ? [] : [summary]);
  }

  /** Lets all happen that time brings: periods end, drafts become final and are paid or not. */
  pass(toMs: number): void {
    this.nowMs = toMs;
    for (const id of this.sessions.keys()) this.#session(id);
    for (const subscription of this.subscriptions.values()) {
      while (subscription.endedAt === null && subscription.period.end <= this.#now) this.#renew(subscription);
    }
    for (const invoice of this.invoices.values())
      if (invoice.status === 'draft' && this.#now >= invoice.created + 3_600) this.#finalize(invoice);
  }

  #renew(subscription: StoredSubscription): void {
    const { start, end } = subscription.period;
    if (subscription.cancelAtPeriodEnd) return this.end(subscription, end);
    let months = 1;
    while (monthsAfter(subscription.anchor * 1_000, months) / 1_000 <= end) months++;
    subscription.period = { start: end, end: monthsAfter(subscription.anchor * 1_000, months) / 1_000 };
    const baseCents = Number(this.prices.get(subscription.prices[0] ?? '')?.cents);
    this.#invoice(subscription, { from: start, to: end, baseCents });
    this.tellOf(subscription);
  }

  #invoice(subscription: StoredSubscription, of: Pick<StoredInvoice, 'from' | 'to' | 'baseCents'>): void {
    const { id: subscriptionId, customer } = subscription;
    const id = this.#id('in');
    const invoice: StoredInvoice = {
      id,
      subscription: subscriptionId,
      customer,
      created: of.to,
      ...of,
      status: 'draft',
      finalizedAt: null,
      lines: {},
    };
    this.invoices.set(id, invoice);
    subscription.latestInvoice = id;
    this.tell('invoice.created', this.#invoiceAsTold(invoice));
  }

  #finalize(invoice: StoredInvoice): void {
    const subscription = this.subscription(invoice.subscription);
    for (const id of subscription.prices) {
      const price = this.prices.get(id) as PriceParts;
      if (price.meter === undefined) continue;
      const units = this.#sum(this.meters.get(price.meter), invoice.customer, invoice.from, invoice.to);
      invoice.lines[id] = centsOf(Math.max(0, units - (price.freeUnits ?? 0)), price.cents);
    }
    Object.assign(invoice, { status: this.pays ? 'paid' : 'open', finalizedAt: invoice.created + 3_600 });
    if (!this.pays && subscription.state === 'active') subscription.state = 'past_due';
    this.tell(this.pays ? 'invoice.paid' : 'invoice.payment_failed', this.#invoiceAsTold(invoice));
    this.tellOf(subscription);
  }

  /** The last invoice was not paid when it became due, in seconds since 1970. */
  owe(subscription: StoredSubscription, dueAt: number): void {
    subscription.state = 'past_due';
    for (const [id, { subscription: of, status }] of this.invoices)
      if (of === subscription.id && status === 'open') this.invoices.delete(id);
    this.#invoice(subscription, { from: dueAt - 3_600, to: dueAt - 3_600, baseCents: 2_000 });
    const invoice = this.invoices.get(subscription.latestInvoice ?? '');
    if (invoice !== undefined) Object.assign(invoice, { status: 'open', finalizedAt: dueAt });
    this.tellOf(subscription);
  }

  /** What was due is paid after all. */
  payUp(subscription: StoredSubscription): void {
    for (const invoice of this.invoices.values()) {
      if (invoice.subscription !== subscription.id || invoice.status !== 'open') continue;
      invoice.status = 'paid';
      this.tell('invoice.paid', this.#invoiceAsTold(invoice));
    }
    subscription.state = 'active';
    this.tellOf(subscription);
  }

  #invoiceAsTold(invoice: StoredInvoice): Fields {
    const { id, status, customer, created, from, to, finalizedAt, baseCents, lines } = invoice;
    const total = baseCents + Object.values(lines).reduce((sum, cents) => sum + cents, 0);
    const paid = status === 'paid' ? total : 0;
    return invoiceObject({
      id,
      status,
      customer,
      created,
      period_start: from,
      period_end: to,
      subtotal: total,
      total,
      amount_due: total,
      amount_paid: paid,
      amount_remaining: total - paid,
      lines: list(`/v1/invoices/${id}/lines`, []),
      status_transitions: {
        finalized_at: finalizedAt,
        marked_uncollectible_at: null,
        paid_at: status === 'paid' ? finalizedAt : null,
        voided_at: null,
      },
    });
  }

  /** The header that Stripe would send with these bytes. */
  signatureOf(body: string, secret: string, atMs = this.nowMs): string {
    const at = Math.floor(atMs / 1_000);
    return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;
  }
}
