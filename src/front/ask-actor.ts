import { limits } from '../../protocol/limits.ts';
import { type ActorCall, actorAnswerFromWire, type CallerNote } from '../../protocol/messages.ts';
import type { Operation } from '../../protocol/operations.ts';
import { storageQuotaBytes } from '../accounts/plans.ts';
import { packMessage } from '../base/msgpack.ts';
import type { Message } from '../base/port-channel.ts';
import { admitAgain } from './admit.ts';
import { fail, sendAnswer } from './answer.ts';
import { packingOf } from './body-packing.ts';
import { scopedKeyDigest } from './idempotency.ts';
import { countAnswer } from './metering.ts';
import { passFileOn } from './pass-file-on.ts';
import type { Admitted } from './request.ts';
import type { Answer } from './response.ts';

/** Hands a request to the actor of its namespace or tenant, and answers what that answers. Hot, and without a promise. */
export function askActor(request: Admitted): void {
  const { front, exchange, operation, body } = request;
  const delivery = front.router.deliver(
    actorCallOf(request),
    body,
    (message) => sendAnswer(request, meteredAnswer(request, message)),
    (error) => fail(request, error),
  );
  if (delivery === null || !mayEndEarly(operation)) return;
  exchange.onAbort(() => front.router.cancel(delivery));
}

/**
 * Has a file that comes from the client imported. The file is there until its actor has answered, even where nobody waits for the
 * answer any more.
 */
export async function askForImport(request: Admitted): Promise<void> {
  const { front, exchange, principal } = request;
  exchange.allowHandlerMs(limits.importDeadlineMs);
  const call = { ...actorCallOf(request), argument: packingOf(exchange) ?? '' };
  if (front.router.isElsewhere(call)) {
    const message = await passFileOn(exchange, {
      admit: async (bytes) => {
        await admitAgain(request);
        exchange.mayTakeEffect();
        request.receivedBytes = bytes;
      },
      send: (file) => front.router.callWithFile(call, file),
    });
    sendAnswer(request, meteredAnswer(request, message));
    return;
  }
  const { share } = principal;
  const quotaBytes = storageQuotaBytes(front.plans[principal.planName], principal);
  const whose = { share, quotaBytes, packing: packingOf(exchange) };
  const message = await front.files.withBody(exchange, whose, async (file) => {
    await admitAgain(request);
    exchange.mayTakeEffect();
    request.receivedBytes = file.bytes;
    return front.router.call(actorCallOf(request), packMessage(file));
  });
  sendAnswer(request, meteredAnswer(request, message));
}

/** Whether it is a query that may take long. One document is read before word could come that nobody waits for it any more. */
function mayEndEarly({ effect, request }: Operation): boolean {
  return effect.meters === 'query' && request !== null;
}

function actorCallOf(request: Admitted): ActorCall {
  const { front, operation, parameters, exchange, principal } = request;
  const isTenants = operation.serves === 'tenant';
  const plan = front.plans[principal.planName];
  const querySeconds = operation.runsAs === 'sql' ? plan.sql_seconds : plan.query_seconds;
  const caller: CallerNote = {
    requestId: request.id,
    namespaces: principal.namespaces,
    createdBy: request.callerAddress,
    personId: principal.personId ?? 0,
    querySeconds,
    storageQuotaBytes: storageQuotaBytes(plan, principal),
    owner: principal.share.owner,
    weight: principal.share.weight,
    readInflightBytes: plan.read_inflight_mb === null ? null : plan.read_inflight_mb * 1_000_000,
  };
  const call: ActorCall = {
    operation: operation.name,
    tenantId: principal.tenantId,
    // A tenant's operation on a namespace names it as its argument: the tenant's actor does it.
    namespace: isTenants ? '' : (parameters.name ?? ''),
    argument: (isTenants ? (parameters.name ?? parameters.id ?? parameters.provider) : parameters.id) ?? '',
    query: exchange.query,
    deadlineMs: deadlineMsOf(request, querySeconds),
    caller,
  };
  const idempotencyKey = keyDigestOf(request);
  return idempotencyKey === null ? call : { ...call, idempotencyKey };
}

/** Milliseconds that the work may still take. Looking for the caller has used up some of a query's. */
function deadlineMsOf({ front, operation, completeMs }: Admitted, querySeconds: number): number {
  if (operation.request === 'file') return limits.importDeadlineMs;
  if (operation.effect.meters !== 'query') return limits.handlerDeadlineMs;
  return Math.max(1, querySeconds * 1_000 - (front.observer.now() - completeMs));
}

/** The digest of the `Idempotency-Key`, by which the tenant knows it; null where there is none, or the operation heeds none. */
export function keyDigestOf({ operation, exchange, principal }: Admitted): string | null {
  return operation.idempotent ? scopedKeyDigest(principal, exchange.header('idempotency-key')) : null;
}

const noBody = new Uint8Array();

function meteredAnswer({ front, operation, principal, surface }: Admitted, message: Message): Answer {
  const { status, headers, meter } = actorAnswerFromWire(message.head);
  const body = message.body ?? noBody;
  const answered = { status, meter, bodyBytes: body.byteLength, surface };
  countAnswer(front.metering, operation, principal, answered);
  return { status, headers, body };
}
