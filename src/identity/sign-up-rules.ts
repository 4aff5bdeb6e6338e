/** What people may choose: address, name and password. */
import {
  emailProblem,
  nameCharactersMax,
  passwordCharactersMax,
  passwordCharactersMin,
} from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { isCommonPassword } from './common-passwords.ts';

export interface SignupInput {
  readonly email: string;
  readonly name: string;
  readonly password: string;
}

/** Trimmed address and name, the password as given. Rejects with 422 `invalid` and all offending fields. */
export async function checkSignup({ email, name, password }: SignupInput): Promise<SignupInput> {
  const checked = { email: email.trim(), name: name.trim(), password };
  const problems = Object.entries({
    email: emailProblem(checked.email),
    name: personNameProblem(checked.name),
    password: await newPasswordProblem(password),
  }).filter((entry): entry is [string, string] => entry[1] !== null);
  if (problems.length === 0) return checked;
  const sentence = problems.map(([field, problem]) => `${field}: ${problem}`).join('; ');
  throw new ApiError('invalid', sentence, { fields: Object.fromEntries(problems) });
}

/** The form by which an address is unique. */
export function emailIdentity(email: string): string {
  return email.trim().toLowerCase();
}

/** What is wrong with a trimmed name of a person or a tenant, or null. */
export function personNameProblem(name: string): string | null {
  if (!hasCharacters(name, 1, nameCharactersMax)) {
    return `must have 1 to ${nameCharactersMax} characters`;
  }
  return name.isWellFormed() && !/\p{Cc}/u.test(name) ? null : 'must not contain control characters';
}

/** What is wrong with a password that somebody chooses, or null. Those that were chosen before go on letting in. */
export async function newPasswordProblem(password: string): Promise<string | null> {
  const problem = passwordProblem(password);
  if (problem !== null || !(await isCommonPassword(password))) return problem;
  const count = limits.commonPasswordsRefused.toLocaleString('en');
  return `is one of the ${count} commonest passwords, which are guessed first: choose another, such as some words together`;
}

/** What is wrong with a password that nobody can have, or null. */
export function passwordProblem(password: string): string | null {
  if (!hasCharacters(password, passwordCharactersMin, passwordCharactersMax)) {
    return `must have ${passwordCharactersMin} to ${passwordCharactersMax} characters`;
  }
  // Halves of surrogate pairs all hash alike.
  return password.isWellFormed() ? null : 'must be well-formed Unicode';
}

/** Counts code points, so that an emoji is one character; strings of any length cost no more than the bound. */
function hasCharacters(text: string, min: number, max: number): boolean {
  if (text.length > 2 * max) return false;
  const characters = [...text].length;
  return characters >= min && characters <= max;
}
