/** Who may ask to connect: clients that registered, and clients that have a document. */
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { type Registration, registrationOf } from './client-metadata.ts';
import { keepRegistration, type OauthClient, readRegistration, storeRegistration } from './client-record.ts';
import { isDocumentId, type MetadataDocuments } from './metadata-document.ts';
import { OauthError } from './oauth-error.ts';

export interface ClientComponents {
  readonly objectStore: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly documents: MetadataDocuments;
}

/** Finds the client of an id. Throws OauthError `invalid_client` where there is none, and `StoreError`. `network`: who asks. */
export async function findClient(
  components: ClientComponents,
  id: string,
  network: string,
): Promise<OauthClient> {
  if (isDocumentId(id)) return components.documents.clientOf(id, network);
  const found = await readRegistration(components.objectStore, id, components.clock.now());
  if (found !== null) return found;
  throw new OauthError(
    'invalid_client',
    'this client is not known here, or registered and was not used within a day: register, and connect again',
  );
}

/** Throws OauthError for metadata that will not do, and `StoreError`. */
export async function registerClient(components: ClientComponents, body: unknown): Promise<Registration> {
  const { objectStore, clock, random } = components;
  const registration = registrationOf(body, { random, nowMs: clock.now() });
  await storeRegistration(objectStore, clock, registration.client);
  return registration;
}

/** Somebody let it connect: its registration stays from now on. */
export async function keepClient(
  { objectStore, clock }: ClientComponents,
  client: OauthClient,
): Promise<void> {
  if (!isDocumentId(client.id)) await keepRegistration(objectStore, clock, client);
}
