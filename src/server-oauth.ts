import { systemClock } from './base/clock.ts';
import { systemRandom } from './base/random.ts';
import type { AuditLog } from './front/audit.ts';
import { readAssets } from './front/console/assets.ts';
import { assetsPath } from './front/console/document.ts';
import type { FrontComponents } from './front/front-components.ts';
import type { HttpHandler } from './front/http-types.ts';
import type { PageFrame } from './front/oauth/authorize-page.ts';
import { pathOf, resourceOf } from './front/oauth/metadata.ts';
import { oauthRoutes } from './front/oauth/routes.ts';
import { deriveKey, type Secrets } from './identity/secrets.ts';
import { MetadataDocuments } from './oauth/metadata-document.ts';
import type { ObjectStore } from './object-store/object-store.ts';
import type { frontOf } from './server-front.ts';

/** The authorization server, put together by hand before the handler of the interface: what is none of its routes goes on. */
export function withOauth(
  handler: HttpHandler,
  parts: {
    readonly front: FrontComponents;
    readonly people: ReturnType<typeof frontOf>['people'];
    readonly store: ObjectStore;
    readonly secrets: Secrets;
    readonly audit: AuditLog;
  },
): HttpHandler {
  const { front, people, store, secrets, audit } = parts;
  const { baseUrl, operations, attempts, openRequests, clientAddresses, admission, observer, logger } = front;
  const { connections, tenants, tokens } = people;
  const documents = new MetadataDocuments({ clock: systemClock });
  const takes = oauthRoutes({
    baseUrl,
    clients: { objectStore: store, clock: systemClock, random: systemRandom, documents },
    connections,
    store,
    tenants,
    loginTokens: tokens,
    random: systemRandom,
    formKey: deriveKey(secrets.loginTokenKeys.present, 'tidebase oauth form v1'),
    frame: pageFrame(pathOf(baseUrl)),
    resource: resourceOf(baseUrl),
    operations,
    attempts,
    openRequests,
    clientAddresses,
    admission,
    observer,
    audit,
    endKeys: (tenantId) => tenants.endKeys(tenantId, null),
    logger,
  });
  return (exchange) => {
    if (!takes(exchange)) handler(exchange);
  };
}

/** Where the console's style sheet is: its files are read when the first page is asked for. */
function pageFrame(path: string): () => PageFrame {
  let frame: PageFrame | null = null;
  return () => {
    if (frame !== null) return frame;
    const folder = path + assetsPath(readAssets().digest);
    frame = { stylesheet: `${folder}console.css`, icon: `${folder}icon.svg` };
    return frame;
  };
}
