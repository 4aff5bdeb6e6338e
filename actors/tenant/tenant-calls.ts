import {
  type KeyLimits,
  keyLimitsSchema,
  keyRequestSchema,
  usageQuerySchema,
} from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import { parseId48 } from '../../protocol/ids.ts';
import { type ActorCall, replayedHeader } from '../../protocol/messages.ts';
import {
  branchRequestSchema,
  linkRequestSchema,
  namespaceListQuerySchema,
  namespaceRequestSchema,
} from '../../protocol/namespace.ts';
import { parseQueryString } from '../../protocol/query-string.ts';
import type { KeyLimitsRecord, KeyRecord } from '../../protocol/stored-tenant.ts';
import { parseQueryWith, parseWith } from '../../protocol/validate.ts';
import { requestDigestOf } from '../../src/accounts/answer-envelope.ts';
import { namespaceAllowed } from '../../src/accounts/scopes.ts';
import { type ActorReply, namespaceJson, reply } from '../actor/actor-reply.ts';
import { planNamespace } from '../embedding/plan-namespace.ts';
import { readBody } from '../thread/request-body.ts';
import { embeddingKeyItem, keyedProviderOf } from './embedding-keys.ts';
import type { Remembering } from './idempotent-requests.ts';
import { handleInternalTenantCall } from './internal-tenant-calls.ts';
import type { TenantActor } from './tenant-actor.ts';
import type { MadeKey, TenantKeys } from './tenant-keys.ts';
import type { MadeOf } from './tenant-links.ts';
import { billingAnswer, usageAnswer } from './usage-answers.ts';

const nothingOfItsOwn = { docsWritten: 0, bytesWritten: 0, storedBytes: 0 };

/** A tenant's operations: JSON for those of REST; those between threads are in internal-tenant-calls.ts. */
export async function handleTenantCall(
  actor: TenantActor,
  call: ActorCall,
  body: Uint8Array | null,
): Promise<ActorReply> {
  switch (call.operation) {
    case 'listKeys':
      return json(
        200,
        actor.keys.list().map((key) => keyItem(key, actor.keys.use(key.id))),
      );
    case 'createKey':
      return createKey(actor, call, body ?? new Uint8Array());
    case 'replaceKeyLimits':
      return replaceKeyLimits(actor, call.argument, body ?? new Uint8Array());
    case 'revokeKey':
      return revokeKey(actor, call.argument);
    case 'listEmbeddingKeys':
      return json(200, { keys: actor.embeddingKeys.list().map(embeddingKeyItem) });
    case 'putEmbeddingKey': {
      const provider = keyedProviderOf(call.argument);
      const { record, tokens } = await actor.embeddingKeys.store(provider, body ?? new Uint8Array());
      return { ...json(200, embeddingKeyItem(record)), embedTokens: tokens };
    }
    case 'deleteEmbeddingKey':
      await actor.embeddingKeys.forget(keyedProviderOf(call.argument));
      return json(204, '');
    case 'usage': {
      const { days } = parseQueryWith(usageQuerySchema, parseQueryString(call.query));
      return json(200, usageAnswer(actor.account.usage(), days));
    }
    case 'billing':
      return json(200, billingAnswer(actor.account.usage(), actor.account.canSubscribe));
    case 'createNamespace':
      return createNamespace(actor, call, body ?? new Uint8Array());
    case 'linkNamespace':
      return makeOf(actor, call, body ?? new Uint8Array(), 'link');
    case 'branchNamespace':
      return makeOf(actor, call, body ?? new Uint8Array(), 'branch');
    case 'listNamespaces':
      return listNamespaces(actor, call);
    case 'deleteNamespace':
      await actor.names.delete(call.argument);
      return json(204, '');
    default:
      return handleInternalTenantCall(actor, call, body ?? new Uint8Array());
  }
}

/**
 * Does a request, or answers as it was answered before. `do` gets what its event has to remember, null where the request brings
 * no `Idempotency-Key`; `show` makes the answer of what was made.
 */
async function onlyOnce<Made>(
  actor: TenantActor,
  call: ActorCall,
  body: Uint8Array,
  work: {
    readonly show: (made: Made) => string;
    readonly do: (remembering: Remembering<Made> | null) => Promise<Made>;
  },
): Promise<ActorReply> {
  const { idempotencyKey: keyDigest } = call;
  if (keyDigest === undefined) return text(201, work.show(await work.do(null)));
  const { operation, argument } = call;
  const asked = argument === '' ? operation : `${operation} ${argument}`;
  const request = { keyDigest, requestDigest: requestDigestOf(asked, body) };
  const run = actor.requests.begin(request);
  if ('done' in run) return reply(run.done.answer, { status: run.done.status, headers: [replayedHeader] });
  try {
    const answer = (made: Made) =>
      actor.requests.stored({ ...request, plannedId: 0 }, { status: 201, text: work.show(made) });
    return text(201, work.show(await work.do({ run, answer })));
  } finally {
    run.letGo();
  }
}

function createKey(actor: TenantActor, call: ActorCall, body: Uint8Array): Promise<ActorReply> {
  const request = parseWith(keyRequestSchema, readBody(body));
  const { createdBy, personId } = call.caller;
  const { name, scope } = request;
  const wanted = { name, scope, ...limitsRecord(request), createdBy, personId };
  return onlyOnce<MadeKey>(actor, call, body, {
    do: (remembering) => actor.keys.create(wanted, remembering),
    show: ({ key, record: { id, name, prefix, scope, namespaces } }) =>
      JSON.stringify({ id, name, key, prefix, scope, namespaces }),
  });
}

function limitsRecord({ namespaces, rate_per_s, cap_queries, cap_writes }: KeyLimits): KeyLimitsRecord {
  return { namespaces, ratePerSecond: rate_per_s, capQueries: cap_queries, capWrites: cap_writes };
}

async function replaceKeyLimits(actor: TenantActor, argument: string, body: Uint8Array): Promise<ActorReply> {
  const request = parseWith(keyLimitsSchema, readBody(body));
  await actor.keys.replaceLimits(keyIdOf(argument), limitsRecord(request));
  return json(204, '');
}

async function revokeKey(actor: TenantActor, argument: string): Promise<ActorReply> {
  await actor.keys.revoke(keyIdOf(argument));
  return json(204, '');
}

/** What is no key's id is answered like a key that is not there. */
function keyIdOf(argument: string): number {
  return parseId48(argument) ?? 0;
}

async function createNamespace(actor: TenantActor, call: ActorCall, body: Uint8Array): Promise<ActorReply> {
  const request = parseWith(namespaceRequestSchema, readBody(body));
  if (!namespaceAllowed(call.caller.namespaces, request.name)) {
    throw new ApiError('forbidden', `this key may not use a namespace named "${request.name}"`);
  }
  const { name } = request;
  const planned = planNamespace(request);
  return onlyOnce<{ readonly createdAt: string }>(actor, call, body, {
    do: (remembering) => actor.names.create(name, planned, remembering),
    show: ({ createdAt }) => namespaceJson({ name, ...planned, createdAt, ...nothingOfItsOwn }),
  });
}

/** A link or a branch of a namespace that the caller may read; the new name was judged on the way here. */
function makeOf(
  actor: TenantActor,
  call: ActorCall,
  body: Uint8Array,
  kind: 'link' | 'branch',
): Promise<ActorReply> {
  const schema = kind === 'link' ? linkRequestSchema : branchRequestSchema;
  const wanted = parseWith(schema, readBody(body));
  if (!namespaceAllowed(call.caller.namespaces, wanted.source))
    throw new ApiError('forbidden', `this key may not use a namespace named "${wanted.source}"`);
  const name = call.argument;
  return onlyOnce<MadeOf>(actor, call, body, {
    do: (remembering) => actor.links[kind](name, wanted, remembering),
    show: (made) => namespaceJson({ name, ...shownOf(made) }),
  });
}

function shownOf({
  begins,
  linked,
  branched,
  ...made
}: MadeOf): Omit<Parameters<typeof namespaceJson>[0], 'name'> {
  const { docsWritten = 0, bytesWritten = 0, storedBytes = 0 } = begins ?? {};
  if (linked === null)
    return { ...made, docsWritten, bytesWritten, storedBytes, branched: branched ?? undefined };
  const { source, version, follows } = linked;
  return { ...made, ...nothingOfItsOwn, storedBytes, linked: { source, version, follows } };
}

function listNamespaces(actor: TenantActor, call: ActorCall): ActorReply {
  const { after, limit } = parseQueryWith(namespaceListQuerySchema, parseQueryString(call.query));
  const allowed = (name: string) => namespaceAllowed(call.caller.namespaces, name);
  const page = actor.names.list({ after, limit, allowed });
  const shown = page.slice(0, limit);
  const next = page.length > limit ? (shown.at(-1)?.name ?? '') : '';
  const items = shown.map(({ name, entry }) => namespaceJson(actor.names.shown(name, entry)));
  return text(200, `{"namespaces":[${items.join(',')}],"next":${JSON.stringify(next)}}`);
}

function keyItem(key: KeyRecord, use: ReturnType<TenantKeys['use']>): unknown {
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    scope: key.scope,
    namespaces: key.namespaces,
    rate_per_s: key.ratePerSecond,
    cap_queries: key.capQueries,
    cap_writes: key.capWrites,
    used_queries: use.queries,
    used_writes: use.writes,
    created_at: key.createdAt,
    last_used_at: use.lastUsedAt === 0 ? null : new Date(use.lastUsedAt).toISOString(),
    created_by: key.createdBy,
  };
}

function text(status: number, body: string): ActorReply {
  return reply(body, { status });
}

function json(status: number, value: unknown): ActorReply {
  return text(status, status === 204 ? '' : JSON.stringify(value));
}
