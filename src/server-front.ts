/** The front of the server, put together by hand for server.ts: who is asked by whom, from the door to the router. */
import { isIP } from 'node:net';
import { isAbsolute, join, relative } from 'node:path';
import { ApiError } from '../protocol/errors.ts';
import { limits } from '../protocol/limits.ts';
import { buildOpenApi } from '../protocol/openapi.ts';
import { operationNames } from '../protocol/operations.ts';
import type { Plans } from './accounts/plans.ts';
import { Authenticator } from './auth/authenticate.ts';
import type { Cached } from './auth/key-cache.ts';
import { mcpAuthenticator } from './auth/mcp-authenticate.ts';
import { CpuShares } from './base/charges.ts';
import { systemClock } from './base/clock.ts';
import type { Logger } from './base/log.ts';
import { TurnDelays } from './base/process-load.ts';
import { systemRandom } from './base/random.ts';
import { settledWithin } from './base/settled-within.ts';
import { nobodysShare, type Share } from './base/share.ts';
import type { PaidPlans } from './billing/paid-plans.ts';
import { scratchFolderOf } from './cluster/cache-folder.ts';
import { accountOperations } from './front/account-operations.ts';
import { Allowances } from './front/allowances.ts';
import { AuditLog } from './front/audit.ts';
import { billingOperations } from './front/billing-operations.ts';
import type { ClientAddresses } from './front/client-address.ts';
import { connectionOperations } from './front/connection-operations.ts';
import { createPages } from './front/console/pages.ts';
import type { FrontDoor } from './front/door.ts';
import type { FrontComponents } from './front/front-components.ts';
import { gatherMetrics, type RunningParts } from './front/gather-metrics.ts';
import { createHandler, runOperation } from './front/handle.ts';
import type { HeldBytes } from './front/held-bytes.ts';
import type { HttpHandler } from './front/http-types.ts';
import { requestMemory } from './front/idempotency.ts';
import { McpMetrics } from './front/mcp/mcp-metrics.ts';
import { createMcp, mcpPath } from './front/mcp/serve-mcp.ts';
import type { Metering } from './front/metering.ts';
import { type MetricsDoor, openMetrics, type ServerState } from './front/metrics.ts';
import { RequestObserver } from './front/observe.ts';
import { OpenRequests } from './front/open-requests.ts';
import { FileReceiver } from './front/receive-file.ts';
import { RequestMetrics } from './front/request-metrics.ts';
import { tenantOperations } from './front/tenant-operations.ts';
import { UsageMeter } from './front/usage-meter.ts';
import type { CountAttempt } from './identity/attempt-counts.ts';
import { Attempts } from './identity/attempts.ts';
import { loginTokens } from './identity/login-token.ts';
import { MailQueue } from './identity/mail-queue.ts';
import { smtpCarrier } from './identity/mailer.ts';
import { outboxCarrier } from './identity/outbox.ts';
import { tooManyPasswords } from './identity/password-gate.ts';
import { type PasswordHasher, type People, preparePeople } from './identity/people.ts';
import { readPerson } from './identity/person-record.ts';
import { deriveKey, type Secrets } from './identity/secrets.ts';
import { personBehind } from './oauth/connection-person.ts';
import { Connections } from './oauth/connections.ts';
import type { ObjectStore } from './object-store/object-store.ts';
import type { SharedCounters } from './object-store/store-counters.ts';
import { type ComputeLane, NotRun } from './router/compute-lane.ts';
import type { RecentOwners } from './router/recent-owners.ts';
import { Router } from './router/router.ts';
import { creatorOf, directoryOf, type Tenants, tenantsThrough } from './router/tenants.ts';
import type { Lanes } from './server-threads.ts';
import type { Settings } from './settings.ts';

/** Who hears of every answer. */
export function observersOf(parts: {
  settings: Settings;
  secrets: Secrets;
  clientAddresses: ClientAddresses;
  logger: Logger;
}) {
  const { settings, secrets, clientAddresses, logger } = parts;
  const requests = new RequestMetrics(operationNames);
  const audit = new AuditLog({
    clock: systemClock,
    logger,
    folder: join(settings.dataDir, 'audit'),
    key: deriveKey(secrets.loginTokenKeys.present, 'tidebase audit v1'),
    addressOf: (exchange) => clientAddresses.of(exchange.remoteAddress, exchange.header('x-forwarded-for')),
  });
  const logsRequests = settings.logLevel === 'debug';
  const observer = new RequestObserver({
    clock: systemClock,
    logger,
    metrics: requests,
    audit,
    logsRequests,
  });
  return { observer, requests, audit, mcp: new McpMetrics() };
}

export async function metricsOf(
  { host, metricsPort: port, memoryBytes, cacheBytes }: Settings,
  sources: {
    readonly door: FrontDoor;
    readonly requests: RequestMetrics;
    readonly mcp: McpMetrics;
    readonly held: HeldBytes;
    readonly counters: SharedCounters;
    readonly running: () => RunningParts | null;
    readonly state: () => ServerState;
  },
): Promise<MetricsDoor | null> {
  if (port === null) return null;
  const { door, held, state, ...others } = sources;
  const heldBytes = () => held.gate.held;
  const turnDelays = new TurnDelays();
  const { inFlight, engine } = door;
  const cpuShares = { front: new CpuShares(), others: new CpuShares() };
  const bounds = { memoryBytes, cacheBytes };
  const own = { bounds, clock: systemClock, turnDelays, inFlight, heldBytes, engine, cpuShares };
  const metrics = await openMetrics({ host, port }, () => gatherMetrics({ ...others, ...own }), state);
  return {
    url: metrics.url,
    close() {
      turnDelays.stop();
      metrics.close();
    },
  };
}

/** The folder of the mails of a server that has no mail server. */
export function outboxOf({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'outbox');
}

export function mailQueueOf(settings: Settings, baseUrl: string, logger: Logger): MailQueue {
  const { smtpUrl, smtpTls, mailFrom } = settings;
  // A mail server may refuse a sender that it does not know: then MAIL_FROM has to be set.
  const { hostname } = new URL(baseUrl);
  if (smtpUrl === null) {
    const folder = outboxOf(settings);
    logger.info('no SMTP_URL is set: mails, and the links in them, are files in this folder', { folder });
  }
  const domain = isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? hostname : 'localhost';
  const from = mailFrom ?? `Tidebase <no-reply@${domain}>`;
  const carrier =
    smtpUrl === null
      ? outboxCarrier({
          folder: outboxOf(settings),
          from,
          clock: systemClock,
          random: systemRandom,
          logger,
        })
      : smtpCarrier({ url: smtpUrl, from, tls: smtpTls });
  return new MailQueue({ carrier, clock: systemClock, logger });
}

export function frontOf(parts: {
  plans: Plans;
  secrets: Secrets;
  store: ObjectStore;
  lanes: { readonly hash: Pick<Lanes['hash'], 'run'> };
  recentOwners: RecentOwners | null;
  /** Whether there are no other servers. */
  isAlone: boolean;
  logger: Logger;
}) {
  const { secrets, store, lanes, recentOwners, logger } = parts;
  const tokens = loginTokens(secrets.loginTokenKeys, systemClock, systemRandom);
  const forget = (cached: Cached) => authenticator.forget(cached);
  const router = new Router({ clock: systemClock, forget, recentOwners });
  const tenants = tenantsThrough(router);
  const allowances = new Allowances(parts.plans, systemClock);
  const usageMeter = new UsageMeter({
    clock: systemClock,
    logger,
    tell: (tenantId, notes) => tenants.noteUsage(tenantId, notes),
    learn: (standing) => allowances.learn(standing),
  });
  const connections = connectionsOf({ secrets, store, tenants });
  const authenticator = new Authenticator(
    {
      objectStore: store,
      tenants: directoryOf(tenants, allowances),
      loginTokens: tokens,
      connections,
      plans: parts.plans,
      clock: systemClock,
    },
    parts,
  );
  const emailOf = async (personId: number) => (await readPerson(store, personId))?.email ?? '';
  let prepared: Promise<People> | null = null;
  const people = () => {
    prepared ??= preparePeople({
      objectStore: store,
      clock: systemClock,
      random: systemRandom,
      hasher: laneHasher(lanes.hash),
      tenantCreator: creatorOf(tenants, emailOf),
      ownerVerified: (tenantId) => tenants.ownerVerified(tenantId),
      async endKeys(tenantId, madeBy) {
        await tenants.endKeys(tenantId, madeBy);
        await connections.endAll(tenantId, madeBy);
      },
      logger,
    }).catch((error: unknown) => {
      // A failure is this request's alone: the next one tries again.
      prepared = null;
      throw error;
    });
    return prepared;
  };
  return {
    router,
    authenticator,
    allowances,
    usageMeter,
    people: { people, tokens, tenants, connections, emailOf },
  };
}

/** What MCP clients were let have, over the store and the actors of tenants. */
function connectionsOf({
  secrets,
  store,
  tenants,
}: {
  readonly secrets: Secrets;
  readonly store: ObjectStore;
  readonly tenants: Tenants;
}): Connections {
  const { present, previous } = secrets.loginTokenKeys;
  const keyOf = (key: Uint8Array) => deriveKey(key, 'tidebase oauth v1');
  return new Connections({
    objectStore: store,
    clock: systemClock,
    random: systemRandom,
    keys: { present: keyOf(present), previous: previous && keyOf(previous) },
    forget: (tenantId, ids) => tenants.forgetConnections(tenantId, ids),
    async isAlive(tenantId, connection) {
      const [person, tenant] = await Promise.all([
        personBehind(store, tenantId, connection),
        tenants.get(tenantId),
      ]);
      return person !== null && tenant !== null && tenant.status !== 'deleting';
    },
  });
}

/** Whose password it is is not known before it is hashed. */
const passwordsShare = nobodysShare(0);

function laneHasher(lane: Pick<ComputeLane, 'run'>): PasswordHasher {
  const run = async (task: object): Promise<unknown> => {
    try {
      return await lane.run({ task, share: passwordsShare, deadlineAt: null });
    } catch (error) {
      throw error instanceof NotRun ? tooManyPasswords() : error;
    }
  };
  return {
    hash: (password) => run({ task: 'hash', password }) as Promise<string>,
    verify: (hash, password) =>
      run({ task: 'verify', hash, password }) as ReturnType<PasswordHasher['verify']>,
  };
}

/**
 * Names the outbox to whoever opens the pages, which may be anybody: as a path only where it is below the folder that the
 * server was started in, so that it tells nothing of the machine. The log has the whole path.
 */
function shownOutbox(settings: Settings): string {
  const path = relative(process.cwd(), outboxOf(settings));
  return path.startsWith('..') || isAbsolute(path) ? "the folder outbox of the server's data folder" : path;
}

/** What handles requests: `createHandler` and `runOperation` of front/handle.ts take it. */
export function frontComponents(parts: {
  settings: Settings;
  door: Pick<FrontDoor, 'baseUrl' | 'admission'>;
  plans: Plans;
  store: ObjectStore;
  router: Router;
  authenticator: Authenticator;
  people: ReturnType<typeof frontOf>['people'];
  billing: PaidPlans | null;
  mails: MailQueue;
  clientAddresses: ClientAddresses;
  countAttempt: CountAttempt;
  metering: Metering;
  cacheFolder: string;
  observer: RequestObserver;
  held: HeldBytes;
  /** Hears that a file begins to come. */
  fileComes: (share: Share) => void;
  logger: Logger;
}): FrontComponents {
  const { settings, door, plans, store, router, authenticator, people, mails, metering, cacheFolder } = parts;
  const { clientAddresses, countAttempt, observer, logger } = parts;
  const { tenants } = people;
  const persons = { objectStore: store, clock: systemClock, random: systemRandom };
  const attempts = new Attempts({
    limits: plans.attempts,
    clock: systemClock,
    sparesLoopback: !clientAddresses.hasProxies,
    count: countAttempt,
  });
  const ofAccounts = accountOperations({
    people: people.people,
    loginTokens: people.tokens,
    tenants,
    attempts,
    mails,
    baseUrl: door.baseUrl,
    forgetLogins: (personId) => router.forget({ of: 'person', id: personId }),
    store,
  });
  const ofConnections = connectionOperations({
    connections: people.connections,
    tenants,
    store,
    tellUsage: (tenantId) => settledWithin(systemClock, metering.meter.flush(tenantId), usageWaitMs),
  });
  const { billing } = parts;
  const operations = new Map([
    ...ofAccounts,
    ...tenantOperations({ tenants, persons, billing }),
    ...billingOperations(billing),
    ...ofConnections,
  ]);
  let openApi: string | null = null;
  return {
    pages: createPages({ mailFiles: settings.smtpUrl === null ? shownOutbox(settings) : null }),
    authenticator,
    attempts,
    openRequests: new OpenRequests(),
    baseUrl: door.baseUrl,
    admission: door.admission,
    router,
    plans,
    logger,
    operations,
    openApi: () => {
      openApi ??= JSON.stringify(buildOpenApi(door.baseUrl));
      return openApi;
    },
    emailOf: people.emailOf,
    clientAddresses,
    files: new FileReceiver({
      folder: scratchFolderOf(cacheFolder),
      random: systemRandom,
      clock: systemClock,
      storedBytes: (tenantId) => tenants.storedBytes(tenantId),
      intake: parts.held.intake,
      fileComes: parts.fileComes,
    }),
    held: parts.held,
    memory: requestMemory(tenants, systemRandom),
    metering,
    settled: (work) => settledWithin(systemClock, work, usageWaitMs),
    credentialInTime: async (looked) => {
      if (await settledWithin(systemClock, looked, limits.credentialWaitMs)) return looked;
      throw new ApiError('unavailable', 'object storage did not answer in time; try again', {
        retryAfter: 1,
      });
    },
    observer,
  };
}

/** Everything that is served, by path: `/mcp`, and what front/handle.ts does. */
export function handlerOf(
  front: FrontComponents,
  { authenticator, metrics }: { readonly authenticator: Authenticator; readonly metrics: McpMetrics },
): HttpHandler {
  const rest = createHandler(front);
  const mcp = createMcp({
    ...front,
    authenticator: mcpAuthenticator(authenticator, front.baseUrl),
    run: (call) => runOperation(front, call),
    metrics,
  });
  return (exchange) => (exchange.path === mcpPath ? mcp(exchange) : rest(exchange));
}

/** How long an answer about usage, or the end of the server, waits for what was counted to be durable. */
export const usageWaitMs = 2_000;
