import type { OperationName } from '../../protocol/operations.ts';
import type { Plans } from '../accounts/plans.ts';
import type { Authenticator } from '../auth/authenticate.ts';
import type { Principal } from '../auth/principal.ts';
import type { Logger } from '../base/log.ts';
import type { Attempts } from '../identity/attempts.ts';
import type { Router } from '../router/router.ts';
import type { Admission } from './admission.ts';
import type { ClientAddresses } from './client-address.ts';
import type { PageAt } from './console/pages.ts';
import type { FrontOperation } from './front-operation.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { RequestMemory } from './idempotency.ts';
import type { Metering } from './metering.ts';
import type { RequestObserver } from './observe.ts';
import type { OpenRequests } from './open-requests.ts';
import type { FileReceiver } from './receive-file.ts';

/** What a request meets on its way. One for each front; server-front.ts puts it together. */
export interface FrontComponents {
  readonly authenticator: Authenticator;
  readonly attempts: Pick<Attempts, 'lookUpsFrom' | 'openRequest' | 'registration'>;
  readonly openRequests: OpenRequests;
  /** The public address, without a slash at its end. */
  readonly baseUrl: string;
  readonly admission: Admission;
  readonly router: Router;
  readonly plans: Plans;
  readonly logger: Logger;
  readonly operations: ReadonlyMap<OperationName, FrontOperation>;
  /** What a person's browser gets at a path where no operation is. */
  readonly pages: PageAt;
  /** `/openapi.json`, as text. */
  readonly openApi: () => string;
  /** The person's e-mail address, for the list of keys. */
  readonly emailOf: (personId: number) => Promise<string>;
  readonly clientAddresses: ClientAddresses;
  readonly files: FileReceiver;
  readonly held: HeldBytes;
  readonly memory: RequestMemory;
  readonly metering: Metering;
  /** Resolves when the work has ended, or after the milliseconds that answers about usage wait for it. */
  readonly settled: (work: Promise<void>) => Promise<unknown>;
  /** Waits for a credential that has to be looked up, no longer than a query may take: then 503. */
  readonly credentialInTime: (looked: Promise<Principal>) => Promise<Principal>;
  /** Hears of every answer. */
  readonly observer: RequestObserver;
}
