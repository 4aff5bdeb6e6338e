/**
 * The front as server.ts composes it, over actors in this very process: no sockets, no threads, real messages between the two.
 * The thread of the actors can be ended in the middle of a call, which another one then takes the place of.
 */
import assert from 'node:assert/strict';
import { MessageChannel } from 'node:worker_threads';
import { ApiError } from '../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { type ActorCall, actorAnswerToWire, actorCallFromWire, noMeter } from '../../protocol/messages.ts';
import { type OperationName, operations } from '../../protocol/operations.ts';
import type { PathParameters } from '../../protocol/routing.ts';
import { builtInPlans } from '../../src/accounts/plans.ts';
import { noCaps, type Principal, principalLimits } from '../../src/auth/principal.ts';
import { systemClock } from '../../src/base/clock.ts';
import { type Message, PortChannel, type Respond } from '../../src/base/port-channel.ts';
import { systemRandom } from '../../src/base/random.ts';
import { Admission } from '../../src/front/admission.ts';
import { ClientAddresses } from '../../src/front/client-address.ts';
import type { FrontComponents } from '../../src/front/front-components.ts';
import { runOperation } from '../../src/front/handle.ts';
import { HeldBytes } from '../../src/front/held-bytes.ts';
import type { HttpAnswer, HttpExchange } from '../../src/front/http-types.ts';
import type { Surface } from '../../src/front/operation-call.ts';
import { encodePerson } from '../../src/identity/person-record.ts';
import { loadSecrets } from '../../src/identity/secrets.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { Tenants } from '../../src/router/tenants.ts';
import { frontComponents, frontOf, mailQueueOf, observersOf } from '../../src/server-front.ts';
import { readSettings } from '../../src/settings.ts';
import { InProcess, quiet, tenantId } from './in-process.ts';
import { personRecord } from './people.ts';
import { temporaryFolder } from './server-process.ts';

export interface FrontInProcess {
  readonly front: FrontComponents;
  readonly tenants: Tenants;
  readonly process: InProcess;
  readonly store: MemoryObjectStore;
  /** Calls that came to the actors, in their order. */
  readonly calls: readonly ActorCall[];
  /** The thread dies with the next call of this name: when it has done what it was asked, and has not answered yet. */
  dieWith(operation: string): void;
  run(name: OperationName, asked?: AskedOperation): Promise<RestAnswer>;
  stop(): Promise<void>;
}

export interface AskedOperation {
  readonly parameters?: Partial<PathParameters>;
  readonly query?: string;
  readonly body?: unknown;
  readonly principal?: Partial<Principal>;
  readonly surface?: Surface;
  readonly idempotencyKey?: string;
}

export interface RestAnswer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: an answer's JSON, read by tests
  readonly body: any;
}

export async function startFront(): Promise<FrontInProcess> {
  // The server's own timers keep no process alive.
  const alive = setInterval(() => {}, 1_000);
  const store = new MemoryObjectStore();
  const process = await InProcess.start({ store, clock: systemClock, random: systemRandom, commitMs: 1 });
  await process.createTenant();
  const person = personRecord({ ...owner, id: owner.personId as PersonId, createdAt: systemClock.now() });
  await store.putIfAbsent(paths.person(person.id), [encodePerson(person)]);
  const { front, router, tenants } = await composeFront(store);
  const thread: Thread = { process, channel: null, dieWith: null, calls: [] };
  const begin = () => beginThread(thread, router.handler());
  router.use([thread]);
  begin();
  return {
    front,
    tenants,
    process,
    store,
    calls: thread.calls,
    dieWith(operation) {
      thread.dieWith = { operation, begin };
    },
    run: (name, asked = {}) => run(front, name, asked),
    async stop() {
      await front.metering.meter.flush().catch(() => {});
      thread.channel?.close();
      await process.drain();
      clearInterval(alive);
    },
  };
}

async function composeFront(store: MemoryObjectStore) {
  const settings = readSettings({ TIDEBASE_DATA_DIR: temporaryFolder(), TIDEBASE_LOG_LEVEL: 'error' });
  const { dataDir } = settings;
  const noKeys = { loginTokenKey: null, keyEncryptionKey: null };
  const noPrevious = { previousLoginTokenKey: null, previousKeyEncryptionKey: null };
  const secrets = await loadSecrets({
    dataDir,
    objectStore: 'fs',
    random: systemRandom,
    ...noKeys,
    ...noPrevious,
  });
  const parts = { settings, secrets, store, logger: quiet, plans: builtInPlans };
  const clientAddresses = new ClientAddresses(settings.trustedProxies);
  const hash = { run: () => assert.fail('no password is hashed here') };
  const { router, authenticator, allowances, usageMeter, people } = frontOf({
    ...parts,
    isAlone: true,
    recentOwners: null,
    lanes: { hash },
  });
  const baseUrl = 'http://127.0.0.1:1';
  const front = frontComponents({
    ...parts,
    router,
    authenticator,
    people,
    billing: null,
    clientAddresses,
    countAttempt: () => assert.fail('nobody logs in here'),
    door: { baseUrl, admission: new Admission({ clock: systemClock }) },
    mails: mailQueueOf(settings, baseUrl, quiet),
    metering: { allowances, meter: usageMeter },
    cacheFolder: `${dataDir}/cache`,
    observer: observersOf({ ...parts, clientAddresses }).observer,
    held: new HeldBytes(settings.memoryBytes, systemClock, { hasOthersThan: () => false }),
    fileComes: () => {},
  });
  return { front, router, tenants: people.tenants };
}

interface Thread {
  readonly process: InProcess;
  readonly calls: ActorCall[];
  channel: PortChannel | null;
  dieWith: { readonly operation: string; readonly begin: () => void } | null;
}

function beginThread(thread: Thread, handler: ConstructorParameters<typeof PortChannel>[1]): void {
  const { port1, port2 } = new MessageChannel();
  thread.channel = new PortChannel(port1, handler, limits.messageInlineBytesMax);
  const served = new PortChannel(
    port2,
    {
      call: (message, respond) => void serve(thread, served, message, respond),
      notice() {},
    },
    limits.messageInlineBytesMax,
  );
}

/** As the actor thread's entry does. */
async function serve(
  thread: Thread,
  channel: PortChannel,
  { head, body }: Message,
  respond: Respond,
): Promise<void> {
  const call = actorCallFromWire(head);
  thread.calls.push(call);
  const answer = await thread.process.host.handle(call, body).then(
    ({ status, headers, json, packed }) => ({ status, headers, body: packed ?? Buffer.from(json) }),
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return { status: error.status, headers: error.headers, body: error.toBody() };
    },
  );
  const { dieWith } = thread;
  if (dieWith?.operation === call.operation) {
    thread.dieWith = null;
    channel.close();
    thread.channel?.close();
    dieWith.begin();
    return;
  }
  const { status, headers } = answer;
  respond(actorAnswerToWire({ status, headers, meter: noMeter }), answer.body);
}

/** The owner, logged in for the tenant that is there. */
export const owner: Principal = {
  auth: 'login',
  tenantId: tenantId as TenantId,
  homeTenantId: tenantId as TenantId,
  tenantStatus: 'active',
  planName: 'free',
  ownerVerified: true,
  personId: 3 as PersonId,
  role: 'owner',
  keyId: null,
  connectionId: null,
  scope: 'admin',
  namespaces: [],
  caps: noCaps,
  limits: principalLimits(builtInPlans.free, null),
  share: { owner: 3, tenant: tenantId, weight: 1 },
};

async function run(
  front: FrontComponents,
  name: OperationName,
  { parameters = {}, query = '', body, principal, surface = 'rest', idempotencyKey }: AskedOperation,
): Promise<RestAnswer> {
  const answer = await runOperation(front, {
    operation: operations[name],
    parameters,
    query,
    body: body === undefined ? null : new TextEncoder().encode(JSON.stringify(body)),
    principal: { ...owner, ...principal },
    outer: outerExchange(),
    surface,
    idempotencyKey,
  });
  answer.sent?.release();
  return readAnswer(answer);
}

function readAnswer({ status, headers, body }: HttpAnswer): RestAnswer {
  const text = Buffer.from(body).toString();
  return { status, headers: new Map(headers), text, body: text === '' ? null : JSON.parse(text) };
}

/** A request whose client waits, and that nothing is asked of but what an operation call passes on. */
function outerExchange(): HttpExchange {
  const unasked = () => assert.fail('not a part of an operation call');
  return {
    requestId: 'test-1',
    method: 'POST',
    path: '/mcp',
    query: '',
    remoteAddress: '192.0.2.1',
    aborted: false,
    declaredBytes: 0,
    header: () => undefined,
    onAbort() {},
    readBody: unasked,
    streamBody: unasked,
    allowHandlerMs() {},
    mayTakeEffect() {},
    secondsLeft: () => 0,
    evict: unasked,
    respond: unasked,
  };
}
