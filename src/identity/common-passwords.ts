/**
 * The door to the list of common passwords: those that are tried first on any account, commonest first and in lower case.
 * Loaded with the first sign-up or reset: unpacking it takes some 20 ms, and most starts see neither.
 */
import { limits } from '../../protocol/limits.ts';

let loading: Promise<ReadonlySet<string>> | null = null;

/** Whether a password is one of the commonest, whatever the case of its letters. */
export async function isCommonPassword(password: string): Promise<boolean> {
  loading ??= loadCommonest();
  return (await loading).has(password.toLowerCase());
}

async function loadCommonest(): Promise<ReadonlySet<string>> {
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  return new Set(dictionary['passwords-common'].slice(0, limits.commonPasswordsRefused));
}
