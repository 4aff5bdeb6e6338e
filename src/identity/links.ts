/**
 * Tokens of mailed links, and which of them work. Pure; using one up is a compare-and-set of the person's record.
 *
 * A token is 12 hexadecimal digits of the person's id, which leads to the record, and 40 of chance. Digits and the first
 * letters only: mail programs take a mark at the end of a link for the end of a sentence.
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { sha256Hex } from '../base/hash.ts';
import { type Random, randomHex } from '../base/random.ts';
import type { Person, PersonLink } from './person-record.ts';

export type LinkKind = PersonLink['kind'];

const idCharacters = 12;
const chanceBytes = 20;
const tokenForm = /^[0-9a-f]{52}$/;

const lifetimesMs: Readonly<Record<LinkKind, number>> = {
  verify: limits.verifyLinkMs,
  reset: limits.resetLinkMs,
};

export interface NewLink {
  /** The token, which goes into the mail and nowhere else. */
  readonly token: string;
  readonly link: PersonLink;
}

/** A link that its person shall get, and nobody else. */
export interface LinkToMail {
  readonly kind: LinkKind;
  readonly person: Pick<Person, 'name' | 'email'>;
  readonly token: string;
}

export function makeLink(
  random: Random,
  { kind, personId, nowMs }: { readonly kind: LinkKind; readonly personId: number; readonly nowMs: number },
): NewLink {
  const token = personId.toString(16).padStart(idCharacters, '0') + randomHex(random, chanceBytes);
  return { token, link: { kind, digest: sha256Hex(token), madeAt: nowMs } };
}

/** Whose link it is, or null where it has not the form of a token. */
export function personOfToken(token: string): number | null {
  return tokenForm.test(token) ? Number.parseInt(token.slice(0, idCharacters), 16) : null;
}

/** The person's links with one more: those that have expired go, and of those of its kind all but the newest. */
export function withLink({ links }: Person, added: PersonLink, nowMs: number): readonly PersonLink[] {
  const alive = links.filter((link) => lives(link, nowMs));
  const others = alive.filter(({ kind }) => kind !== added.kind);
  const ofKind = [...alive.filter(({ kind }) => kind === added.kind), added];
  return [...others, ...ofKind.slice(-limits.linksPerPersonMax)];
}

/** Digests are compared, so how long it takes says nothing of the token. */
export function linkWorks(
  { links }: Person,
  asked: { readonly kind: LinkKind; readonly token: string; readonly nowMs: number },
): boolean {
  const digest = sha256Hex(asked.token);
  return links.some((link) => link.kind === asked.kind && link.digest === digest && lives(link, asked.nowMs));
}

function lives({ kind, madeAt }: PersonLink, nowMs: number): boolean {
  return nowMs < madeAt + lifetimesMs[kind];
}

const remedies: Readonly<Record<LinkKind, string>> = {
  verify: 'log in and have another one sent',
  reset: 'ask for another one',
};

/** 400: the same for a token that was used, has expired, was replaced by newer ones or never was. */
export function deadLink(kind: LinkKind): ApiError {
  const sentence = `this link was used already, has expired or is not whole: ${remedies[kind]}`;
  return new ApiError('bad_request', sentence, {
    fields: { token: 'was used already, has expired or is not whole' },
  });
}
