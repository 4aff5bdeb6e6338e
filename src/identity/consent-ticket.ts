/**
 * That a person has just shown who they are on the page where clients ask to connect: it goes into that page's next form, so that
 * neither a password nor a login token has to. It is good for that page alone, in the browser that it was made for.
 */
import { type PersonId, parseId48 } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { type LoginTokens, signToken, verifyToken } from './login-token.ts';

export interface ConsentTicket {
  readonly personId: PersonId;
  /** The person's generation; another one now means that the ticket was revoked. */
  readonly generation: number;
  /** A digest of what that browser keeps. */
  readonly browser: string;
}

const kind = { type: 'consent+jwt', audience: 'tidebase-consent' } as const;

export function signConsentTicket(
  tokens: LoginTokens,
  { personId, generation, browser }: ConsentTicket,
): Promise<string> {
  const seconds = limits.consentTicketMs / 1_000;
  return signToken(tokens, kind, {
    subject: String(personId),
    seconds,
    claims: { gen: generation, browser },
  });
}

/** Reads a ticket; null for every one that is not ours, was changed or has expired. Generation and browser are for the caller to compare. */
export async function verifyConsentTicket(tokens: LoginTokens, text: string): Promise<ConsentTicket | null> {
  const payload = await verifyToken(tokens, kind, text);
  const { sub, gen, browser } = payload ?? {};
  const personId = typeof sub === 'string' ? parseId48(sub) : null;
  if (personId === null || typeof gen !== 'number' || typeof browser !== 'string') return null;
  return { personId: personId as PersonId, generation: gen, browser };
}
