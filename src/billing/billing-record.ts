/**
 * What we know of a tenant's customer at the payment provider: one object a tenant, so that claiming an event and keeping what
 * follows from it, opening a checkout, and noting what a meter was told are each one compare-and-set, whichever server does it.
 * Times are milliseconds since 1970.
 */
import { storedCheck } from '../../protocol/stored-schema.ts';
import { billingStandingSchema, tenantRecordSchema } from '../../protocol/stored-tenant.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { meteredParts } from '../accounts/billing.ts';
import { encodeRecord, type RecordFormat } from '../base/record.ts';
import { type RecordStore, readRecord, type StoredRecord, updateRecord } from '../identity/stored-record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { subscriptionStates } from './payment-provider.ts';

const time = z.number();
const count = z.int().min(0);
const units = z.strictObject(
  Object.fromEntries(meteredParts.map((part) => [part, count])) as Record<
    (typeof meteredParts)[number],
    typeof count
  >,
);

const checkoutSchema = z.strictObject({
  /** Null until the provider has told it. */
  sessionId: z.string().nullable(),
  /** What the page was asked for with: asked again it must be the same. */
  anchorAt: time,
  expiresAt: time,
});

const subscriptionSchema = z.strictObject({
  id: z.string(),
  state: z.enum(subscriptionStates),
  anchorAt: time,
  cancelAtPeriodEnd: z.boolean(),
  /** When it ended; null while it lives. */
  endedAt: time.nullable(),
  /** Since when something is due and not paid. */
  unpaidSince: time.nullable(),
});
export type KnownSubscription = Readonly<z.output<typeof subscriptionSchema>>;

const meteredHourSchema = z.strictObject({
  /** The beginning of the UTC hour that was used. */
  hourAt: time,
  /** The time that its events carry: the last second of that hour, or of the part of it that had passed. */
  eventsAt: time,
  units: units.partial(),
  /** When they were first sent, surely before the provider can have them; null before that. */
  firstSentAt: time.nullable(),
});
export type MeteredHour = Readonly<z.output<typeof meteredHourSchema>>;

const toldSchema = z.strictObject({
  /** The beginning of the period whose units `planned` counts. */
  periodAt: time,
  /** Units of that period that are told, or are in `hours`. */
  planned: units,
  /** The time up to which all that was used is told or in `hours`. */
  until: time,
  /** What may not have reached the provider yet, oldest first. */
  hours: z.array(meteredHourSchema).readonly(),
});
export type Told = Readonly<z.output<typeof toldSchema>>;

const billingRecordSchema = z.strictObject({
  /** Null before the first checkout. */
  customerId: z.string().nullable(),
  /** Part of every `Idempotency-Key`: rises where the provider refused, since it would say the same again. */
  attempt: count,
  checkout: checkoutSchema.nullable(),
  /** As it was fetched last; null where there was none. */
  subscription: subscriptionSchema.nullable(),
  /** What follows for the tenant. */
  change: z
    .strictObject({
      plan: tenantRecordSchema.shape.plan,
      status: tenantRecordSchema.shape.status,
      billing: billingStandingSchema,
    })
    .nullable(),
  /** When the subscription was fetched last. */
  fetchedAt: time,
  /** Ids of events that are in `subscription`, oldest first. */
  events: z.array(z.string()).readonly(),
  told: toldSchema.nullable(),
  nonce: z.string(),
});
export type BillingRecord = Readonly<z.output<typeof billingRecordSchema>>;

const format: RecordFormat<BillingRecord> = {
  magic: 'TBBL',
  versions: [formats.billing.version],
  check: storedCheck(billingRecordSchema),
};

export const noBilling: BillingRecord = {
  customerId: null,
  attempt: 0,
  checkout: null,
  subscription: null,
  change: null,
  fetchedAt: 0,
  events: [],
  told: null,
  nonce: '',
};

export function encodeBilling(tenantId: number, value: BillingRecord): Uint8Array {
  return encodeRecord(format, value, paths.tenantBilling(tenantId));
}

function storedBilling(tenantId: number): StoredRecord<BillingRecord> {
  return { path: paths.tenantBilling(tenantId), format, absent: noBilling, name: 'the billing record' };
}

/** Throws `StoreError` and `DataError`. */
export async function readBilling(store: Pick<ObjectStore, 'get'>, tenantId: number): Promise<BillingRecord> {
  return (await readRecord(store, storedBilling(tenantId)))?.value ?? noBilling;
}

/** Replaces it by what `change` makes of it, as `updateRecord` says; answers what is stored then. */
export async function updateBilling(
  store: RecordStore,
  tenantId: number,
  change: (record: BillingRecord) => BillingRecord | Promise<BillingRecord>,
): Promise<BillingRecord> {
  return (await updateRecord(store, storedBilling(tenantId), change)) ?? noBilling;
}
