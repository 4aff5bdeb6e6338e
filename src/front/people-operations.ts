import {
  forgotRequestSchema,
  loginRequestSchema,
  type ResetRequest,
  resetRequestSchema,
  signupRequestSchema,
  verifyRequestSchema,
} from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { TenantId } from '../../protocol/ids.ts';
import type { OperationName } from '../../protocol/operations.ts';
import { parseWith } from '../../protocol/validate.ts';
import { noSuchTenant } from '../auth/authenticate.ts';
import { must } from '../base/assert.ts';
import type { Attempts } from '../identity/attempts.ts';
import type { LinkToMail } from '../identity/links.ts';
import { type LoginTokens, signLoginToken } from '../identity/login-token.ts';
import type { MailQueue } from '../identity/mail-queue.ts';
import { makeReset, renewVerification, resetPassword, verifyAddress } from '../identity/mailed-links.ts';
import { mailOf } from '../identity/mails.ts';
import { PasswordGate } from '../identity/password-gate.ts';
import { login, type People, signup } from '../identity/people.ts';
import type { Person } from '../identity/person-record.ts';
import type { Tenants } from '../router/tenants.ts';
import type { FrontOperation, FrontRequest } from './front-operation.ts';

export interface PeopleOperationsComponents {
  /** Made on first use: it starts the lane that hashes passwords. */
  readonly people: () => Promise<People>;
  readonly loginTokens: LoginTokens;
  readonly tenants: Pick<Tenants, 'get'>;
  readonly attempts: Attempts;
  readonly mails: MailQueue;
  /** The address that links lead to, without a slash at its end. */
  readonly baseUrl: string;
  /** Has every front forget the logins of a person, also those of other servers; these have had their time when it resolves. */
  readonly forgetLogins: (personId: number) => Promise<void>;
}

/** Signing up, logging in, and what mailed links are for. */
export function peopleOperations(
  components: PeopleOperationsComponents,
): readonly (readonly [OperationName, FrontOperation])[] {
  const gate = new PasswordGate();
  return [
    ['signup', (request) => signUp(components, gate, request)],
    ['login', (request) => logIn(components, gate, request)],
    ['verifyEmail', (request) => verifyEmail(components, request)],
    ['resendVerification', (request) => resendVerification(components, request)],
    ['forgotPassword', (request) => forgotPassword(components, request)],
    ['resetPassword', (request) => reset(components, request)],
  ];
}

async function signUp(
  components: PeopleOperationsComponents,
  gate: PasswordGate,
  { body, clientAddress }: FrontRequest,
): Promise<unknown> {
  const input = parseWith(signupRequestSchema, body);
  await components.attempts.signup(clientAddress);
  const made = await gate.run(async () => signup(await components.people(), input));
  // The account is there whether or not the mail can be sent: it can be asked for again.
  post(components, made.verification);
  return {
    id: made.personId,
    tenant_id: made.tenantId,
    key: made.key,
    key_id: made.keyId,
    key_prefix: made.keyPrefix,
    scope: 'admin',
  };
}

async function logIn(
  components: PeopleOperationsComponents,
  gate: PasswordGate,
  { body, clientAddress, tenant }: FrontRequest,
): Promise<unknown> {
  const input = parseWith(loginRequestSchema, body, '', 'bad_request');
  const attempter = { email: input.email, address: clientAddress };
  const person = await components.attempts.login(attempter, () =>
    gate.run(async () => login(await components.people(), input)),
  );
  const tenantId = tenant === undefined ? null : await tenantOf(components, person, tenant);
  return { token: await signLoginToken(components.loginTokens, person, tenantId) };
}

/** The tenant that somebody logs in for. Throws 404, the same for one that is not theirs, is gone or never was. */
async function tenantOf(
  { tenants }: PeopleOperationsComponents,
  person: Pick<Person, 'tenants'>,
  asked: string,
): Promise<TenantId> {
  const membership = person.tenants.find(({ tenantId }) => String(tenantId) === asked);
  const tenant = membership === undefined ? null : await tenants.get(membership.tenantId);
  if (membership === undefined || tenant === null || tenant.status === 'deleting') throw noSuchTenant();
  return membership.tenantId;
}

async function verifyEmail(
  { attempts, people }: PeopleOperationsComponents,
  { body, clientAddress, isAbout }: FrontRequest,
): Promise<unknown> {
  const { token } = parseWith(verifyRequestSchema, body, '', 'bad_request');
  isAbout(await attempts.useLink(clientAddress, async () => verifyAddress(await people(), token)));
  return { verified: true };
}

/** Mails a new verification link to the person who made the key. */
async function resendVerification(
  components: PeopleOperationsComponents,
  { principal }: FrontRequest,
): Promise<unknown> {
  const { personId } = must(principal, 'a principal');
  if (personId === null)
    throw new ApiError('bad_request', 'no person made this key: use one that a person made');
  // Before the minute begins that a person then has to wait.
  if (components.mails.isFull) throw tooManyMails();
  const link = await renewVerification(await components.people(), personId);
  if (link === null) return { verified: true, sent: false };
  return { verified: false, sent: post(components, link) };
}

/**
 * Answered before anything is looked up: neither the answer nor the time that it takes depends on there being such an
 * account.
 */
async function forgotPassword(
  { attempts, mails, people, baseUrl }: PeopleOperationsComponents,
  { body, clientAddress }: FrontRequest,
): Promise<unknown> {
  const { email } = parseWith(forgotRequestSchema, body, '', 'bad_request');
  await attempts.forgotPassword({ email, address: clientAddress });
  const posted = mails.post('reset', async () => {
    const link = await makeReset(await people(), email);
    return link && mailOf(link, baseUrl);
  });
  if (!posted) throw tooManyMails();
  return { sent: true };
}

async function reset(
  { attempts, people, forgetLogins }: PeopleOperationsComponents,
  { body, clientAddress, isAbout }: FrontRequest,
): Promise<unknown> {
  const input = resetInput(body);
  const { id, email } = await attempts.useLink(clientAddress, async () =>
    resetPassword(await people(), input, forgetLogins),
  );
  isAbout(id);
  await attempts.forgiveLogins({ email, address: clientAddress });
  return { reset: true };
}

/** A token that cannot be one is a dead link like any other: 400. A password that is none is 422. */
function resetInput(body: unknown): ResetRequest {
  try {
    return parseWith(resetRequestSchema, body);
  } catch (error) {
    if (!(error instanceof ApiError) || error.fields?.token === undefined) throw error;
    throw new ApiError('bad_request', error.message, { fields: error.fields });
  }
}

function post({ mails, baseUrl }: PeopleOperationsComponents, link: LinkToMail): boolean {
  const mail = mailOf(link, baseUrl);
  return mails.post(link.kind, async () => mail);
}

function tooManyMails(): ApiError {
  return new ApiError('rate_limited', 'too many mails wait to be sent: try again in a minute', {
    retryAfter: 60,
  });
}
