/**
 * What binds forms and tickets of the page to one browser: 128 random bits in a cookie, which no other page reads or can send a form
 * with. Nobody is logged in by it. Pure.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { sha256Hex } from '../../base/hash.ts';
import { placeOf } from './metadata.ts';

const cookieName = 'tidebase_authorize';
const cookieSeconds = 3_600;
export const browserBytes = 16;

/** The bits that the browser sent, as text; null where it sent none. */
export function browserOf(cookie: string | undefined): string | null {
  const [, browser] = /(?:^|; *)tidebase_authorize=([0-9a-f]{32})(?:;|$)/.exec(cookie ?? '') ?? [];
  return browser ?? null;
}

export function cookieOf(baseUrl: string, browser: string): string {
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  return `${cookieName}=${browser}; Path=${placeOf(baseUrl, 'authorize')}; Max-Age=${cookieSeconds}; HttpOnly; SameSite=Lax${secure}`;
}

/** What only the forms of this browser carry. */
export function csrfOf(formKey: Uint8Array, browser: string): string {
  return createHmac('sha256', formKey).update(`form ${browser}`).digest('hex');
}

export function isFormOf(formKey: Uint8Array, browser: string, csrf: string): boolean {
  const expected = csrfOf(formKey, browser);
  return csrf.length === expected.length && timingSafeEqual(Buffer.from(csrf), Buffer.from(expected));
}

/** Answers by what a ticket knows its browser: a digest, of which nobody can make the cookie. */
export function ticketBrowser(browser: string): string {
  return sha256Hex(`ticket ${browser}`).slice(0, 32);
}
