/** Objects of the payment provider's interface as the stand-in answers them: what is not said is null or empty, as its description demands. */
import type { StoredSubscription } from './stripe-wire.ts';

export type Fields = Record<string, unknown>;

const nulls = (names: string): Fields => Object.fromEntries(names.split(' ').map((name) => [name, null]));

export const list = (url: string, data: readonly unknown[]): Fields => ({
  object: 'list',
  url,
  has_more: false,
  data,
});

export function customerObject(id: string, created: number, given: Fields): Fields {
  return {
    id,
    object: 'customer',
    balance: 0,
    created,
    livemode: false,
    metadata: given.metadata ?? {},
    name: given.name ?? null,
    ...nulls('default_source description email shipping'),
    invoice_settings: nulls('custom_fields default_payment_method footer rendering_options'),
  };
}

export function sessionObject(of: Fields): Fields {
  return {
    object: 'checkout.session',
    livemode: false,
    mode: 'subscription',
    payment_status: 'no_payment_required',
    payment_method_types: ['card'],
    custom_fields: [],
    shipping_options: [],
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    custom_text: nulls('after_submit shipping_address submit terms_of_service_acceptance'),
    ...nulls(
      'adaptive_pricing after_expiration allow_promotion_codes allowed_payment_method_types amount_subtotal amount_total billing_address_collection cancel_url client_reference_id client_secret collected_information consent consent_collection currency currency_conversion customer_account customer_creation customer_details customer_email discounts integration_identifier invoice invoice_creation locale managed_payments origin_context payment_intent payment_link payment_method_collection payment_method_configuration_details payment_method_options permissions recovered_from saved_payment_method_options setup_intent shipping_address_collection shipping_cost submit_type subscription total_details ui_mode wallet_options',
    ),
    ...of,
  };
}

export function portalObject(of: Fields): Fields {
  return {
    object: 'billing_portal.session',
    livemode: false,
    configuration: 'bpc_1',
    ...nulls('customer_account flow locale on_behalf_of'),
    ...of,
  };
}

export function subscriptionObject(known: StoredSubscription, prices: readonly Fields[]): Fields {
  const { id, customer, created, anchor, period, state, metadata } = known;
  const items = prices.map((price, index) => ({
    id: `si_${id}_${index}`,
    object: 'subscription_item',
    billing_thresholds: null,
    created,
    current_period_start: period.start,
    current_period_end: period.end,
    discounts: [],
    metadata: {},
    price,
    plan: planObject(price),
    subscription: id,
    tax_rates: [],
    current_trial: null,
    ...(index === 0 ? { quantity: 1 } : {}),
  }));
  return {
    id,
    object: 'subscription',
    status: state,
    customer,
    metadata,
    created,
    start_date: created,
    billing_cycle_anchor: anchor,
    cancel_at_period_end: known.cancelAtPeriodEnd,
    ended_at: known.endedAt,
    canceled_at: known.endedAt,
    latest_invoice: known.latestInvoice,
    currency: 'usd',
    livemode: false,
    collection_method: 'charge_automatically',
    automatic_tax: { enabled: false, disabled_reason: null, liability: null },
    billing_mode: { type: 'classic', flexible: null },
    billing_schedules: [],
    discounts: [],
    invoice_settings: {
      ...nulls('account_tax_ids custom_fields description footer'),
      issuer: { type: 'self' },
    },
    items: list('/v1/subscription_items', items),
    ...nulls(
      'application application_fee_percent billing_cycle_anchor_config billing_thresholds cancel_at cancellation_details customer_account days_until_due default_payment_method default_source description managed_payments next_pending_invoice_item_invoice on_behalf_of pause_collection payment_settings pending_invoice_item_interval pending_setup_intent pending_update schedule test_clock transfer_data trial_end trial_settings trial_start',
    ),
  };
}

/** The older form of a price, which items still have. */
function planObject({
  id,
  billing_scheme,
  created,
  tiers_mode,
  unit_amount_decimal,
  recurring,
}: Fields): Fields {
  const { meter, usage_type } = recurring as Fields;
  return {
    id,
    object: 'plan',
    active: true,
    amount: null,
    amount_decimal: unit_amount_decimal,
    billing_scheme,
    created,
    currency: 'usd',
    interval: 'month',
    interval_count: 1,
    livemode: false,
    metadata: {},
    meter,
    product: 'prod_1',
    tiers_mode,
    usage_type,
    ...nulls('nickname transform_usage trial_period_days'),
  };
}

export function invoiceObject(of: Fields): Fields {
  return {
    object: 'invoice',
    livemode: false,
    currency: 'usd',
    collection_method: 'charge_automatically',
    attempt_count: 0,
    attempted: false,
    amount_overpaid: 0,
    amount_shipping: 0,
    starting_balance: 0,
    post_payment_credit_notes_amount: 0,
    pre_payment_credit_notes_amount: 0,
    default_tax_rates: [],
    discounts: [],
    automatic_tax: { enabled: false, disabled_reason: null, liability: null, provider: null, status: null },
    issuer: { type: 'self' },
    payment_settings: nulls('default_mandate payment_method_options payment_method_types'),
    ...nulls(
      'account_country account_name account_tax_ids application automatically_finalizes_at billing_reason custom_fields customer_account customer_address customer_email customer_name customer_phone customer_shipping customer_tax_exempt default_payment_method default_source description due_date effective_at ending_balance footer from_invoice last_finalization_error latest_revision metadata next_payment_attempt number on_behalf_of parent receipt_number rendering shipping_cost shipping_details statement_descriptor subtotal_excluding_tax test_clock total_discount_amounts total_excluding_tax total_pretax_credit_amounts total_taxes webhooks_delivered_at',
    ),
    ...of,
  };
}

export interface PriceParts {
  readonly id: string;
  /** Cents of a month, or of a unit past what is free. */
  readonly cents: string;
  readonly meter?: string;
  readonly freeUnits?: number;
}

export function priceObject({ id, cents, meter, freeUnits }: PriceParts): Fields {
  const isTiered = freeUnits !== undefined && freeUnits > 0;
  const tier = (up_to: number | null, decimal: string) => ({
    up_to,
    unit_amount: null,
    unit_amount_decimal: decimal,
    flat_amount: null,
    flat_amount_decimal: null,
  });
  return {
    id,
    object: 'price',
    active: true,
    billing_scheme: isTiered ? 'tiered' : 'per_unit',
    created: 1_700_000_000,
    currency: 'usd',
    livemode: false,
    metadata: {},
    product: 'prod_1',
    type: 'recurring',
    recurring: {
      interval: 'month',
      interval_count: 1,
      meter: meter ?? null,
      trial_period_days: null,
      usage_type: meter === undefined ? 'licensed' : 'metered',
    },
    tiers_mode: isTiered ? 'graduated' : null,
    ...(isTiered ? { tiers: [tier(freeUnits, '0'), tier(null, cents)] } : {}),
    unit_amount: null,
    unit_amount_decimal: isTiered ? null : cents,
    ...nulls('custom_unit_amount lookup_key nickname tax_behavior transform_quantity'),
  };
}

export function meterObject(id: string, eventName: string): Fields {
  return {
    id,
    object: 'billing.meter',
    created: 1_700_000_000,
    updated: 1_700_000_000,
    livemode: false,
    display_name: eventName,
    event_name: eventName,
    event_time_window: null,
    status: 'active',
    status_transitions: { deactivated_at: null },
    customer_mapping: { event_payload_key: 'stripe_customer_id', type: 'by_id' },
    default_aggregation: { formula: 'sum' },
    value_settings: { event_payload_key: 'value' },
  };
}
