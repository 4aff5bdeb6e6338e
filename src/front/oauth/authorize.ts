/**
 * The page where a person lets a client connect, in three steps, none of which leaves anything on the server until the last:
 *
 * 1. The client's request is checked. While it is not certain whose redirect address it is, the person is told and sent nowhere;
 *    from then on refusals go to the client.
 * 2. The person signs in or up, by the same operations, limits and audit events as in the console. The next form has a ticket
 *    that says who they are, for ten minutes and for this browser.
 * 3. They choose tenant, access and namespaces, and go back to the client with a code, or with `access_denied`.
 *
 * The client's request travels along as the query that it came with and is checked in each step anew. A cookie holds 128 random
 * bits, which forms and tickets are bound to: a form of another page, or of another browser, is refused. It says nothing of the
 * person, and nobody is logged in by it.
 */
import { keyNamespacesMax } from '../../../protocol/account.ts';
import { ApiError } from '../../../protocol/errors.ts';
import type { PersonId, TenantId } from '../../../protocol/ids.ts';
import { limits } from '../../../protocol/limits.ts';
import { namespacePatternProblem } from '../../accounts/scopes.ts';
import { type Random, randomHex } from '../../base/random.ts';
import { signConsentTicket, verifyConsentTicket } from '../../identity/consent-ticket.ts';
import type { LoginTokens } from '../../identity/login-token.ts';
import { type Person, readPerson } from '../../identity/person-record.ts';
import {
  type AuthorizeRequest,
  authorizeRequestOf,
  redirectUriOf,
  stateOf,
} from '../../oauth/authorize-request.ts';
import { type ClientComponents, findClient, keepClient } from '../../oauth/clients.ts';
import type { Connections } from '../../oauth/connections.ts';
import { OauthError } from '../../oauth/oauth-error.ts';
import { isLoopbackUri, redirectHost, redirectWith } from '../../oauth/redirect-uri.ts';
import type { ObjectStore } from '../../object-store/object-store.ts';
import type { Tenants } from '../../router/tenants.ts';
import type { HeaderList } from '../rate-limit-headers.ts';
import type { Answer } from '../response.ts';
import {
  type AuthorizeView,
  authorizeDocument,
  type ConsentChoice,
  type PageFrame,
  type ProblemView,
  type SignInView,
} from './authorize-page.ts';
import { browserBytes, browserOf, cookieOf, csrfOf, isFormOf, ticketBrowser } from './browser-binding.ts';
import { type FormParameters, formParameters, needed } from './form-parameters.ts';
import { pathOf, placeOf, resourceOf } from './metadata.ts';

export interface AuthorizeComponents {
  /** The server's own address, without a slash at its end. It is the issuer, too. */
  readonly baseUrl: string;
  readonly clients: ClientComponents;
  readonly connections: Pick<Connections, 'allow'>;
  readonly store: ObjectStore;
  readonly tenants: Pick<Tenants, 'get'>;
  readonly loginTokens: LoginTokens;
  readonly random: Random;
  /** What forms are signed with. */
  readonly formKey: Uint8Array;
  readonly frame: () => PageFrame;
}

/** One request of the browser. */
export interface PageVisit {
  readonly cookie: string | undefined;
  /** Where the browser is (`networkOf`). */
  readonly network: string;
  /** Signs somebody in, or up, and answers who it is. Throws ApiError as the operations do. */
  readonly signIn: (given: { readonly email: string; readonly password: string }) => Promise<PersonId>;
  readonly signUp: (given: {
    readonly name: string;
    readonly email: string;
    readonly password: string;
  }) => Promise<PersonId>;
  /** Tells the audit log. */
  readonly allowed: (done: {
    readonly tenantId: TenantId;
    readonly personId: PersonId;
    readonly connectionId: number;
    readonly scope: string;
  }) => void;
}

/** Our own parameter beside the client's: which of the two forms is shown. */
const screenParameter = 'tidebase_screen';

interface Step {
  readonly request: AuthorizeRequest;
  /** The client's, without our own parameter. */
  readonly query: string;
  /** The secret that the browser keeps. */
  readonly browser: string;
}

/** The request is the client's, and so is the refusal of it. */
class SendBack extends Error {
  override name = 'SendBack';
  readonly redirectUri: string;
  readonly state: string | null;
  readonly refusal: OauthError;

  constructor(redirectUri: string, state: string | null, refusal: OauthError) {
    super(refusal.message);
    this.redirectUri = redirectUri;
    this.state = state;
    this.refusal = refusal;
  }
}

/** The first look at the page: GET, with the client's request in the query. */
export function showAuthorize(
  components: AuthorizeComponents,
  rawQuery: string,
  visit: PageVisit,
): Promise<Answer> {
  return answering(components, 'nobody', async () => {
    const asked = formParameters(rawQuery);
    const query = withoutScreen(rawQuery);
    const request = await requestOf(components, query, visit);
    const browser = browserOf(visit.cookie) ?? randomHex(components.random, browserBytes);
    const kind = asked.get(screenParameter) === 'sign-up' ? 'sign-up' : 'sign-in';
    const step = { request, query, browser };
    const answer = page(components, signInView(components, step, { kind }), request);
    return { ...answer, headers: [...answer.headers, ['set-cookie', cookieOf(components.baseUrl, browser)]] };
  });
}

/** What a form of the page sends. */
export function continueAuthorize(
  components: AuthorizeComponents,
  form: FormParameters,
  visit: PageVisit,
): Promise<Answer> {
  return answering(components, 'a person', async () => {
    const query = needed(form, 'request');
    const browser = browserOf(visit.cookie);
    if (browser === null || !isFormOf(components.formKey, browser, form.get('csrf') ?? ''))
      throw foreignForm();
    const step = { request: await requestOf(components, query, visit), query, browser };
    switch (form.get('action')) {
      case 'sign-in':
      case 'sign-up':
        return signedIn(components, step, {
          form,
          visit,
          kind: form.get('action') === 'sign-up' ? 'sign-up' : 'sign-in',
        });
      case 'deny':
        throw new SendBack(
          step.request.redirectUri,
          step.request.state,
          new OauthError('access_denied', 'the person said no'),
        );
      case 'allow':
        return allowed(components, step, { form, visit });
      default:
        throw new OauthError('invalid_request', 'the form is not whole: connect again');
    }
  });
}

/**
 * Whoever has used the page is sent back with a refusal. Who has only followed a link to it is not: anybody can register a client,
 * and links to this server would lead on to any site of theirs (RFC 9700, 4.11.2). Their own computer is no such site.
 */
async function answering(
  components: AuthorizeComponents,
  acted: 'a person' | 'nobody',
  work: () => Promise<Answer>,
): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SendBack)) return problemAnswer(components, error);
    const { refusal, redirectUri, state } = error;
    const told = { error: refusal.code, error_description: refusal.message, state };
    if (acted === 'a person' || isLoopbackUri(redirectUri)) return sendTo(components, redirectUri, told);
    const href = redirectWith(redirectUri, { ...told, iss: components.baseUrl });
    return problemAnswer(components, refusal, { href, host: redirectHost(redirectUri) });
  }
}

/** A page that says why nothing was done. Throws what is no refusal. */
export function problemAnswer(
  components: Pick<AuthorizeComponents, 'frame'>,
  error: unknown,
  back: ProblemView['back'] = null,
): Answer {
  if (!(error instanceof OauthError) && !(error instanceof ApiError)) throw error;
  const isBusy = error instanceof OauthError && error.code === 'temporarily_unavailable';
  const status = error instanceof ApiError ? error.status : isBusy ? 503 : 400;
  const sentence = sentenceOf(error.message);
  const headers: [string, string][] = [];
  if (error instanceof ApiError && error.retryAfter !== undefined)
    headers.push(['retry-after', String(error.retryAfter)]);
  const answer = page(
    components,
    { kind: 'problem', title: 'This cannot be connected', sentence, back },
    null,
    status,
  );
  return { ...answer, headers: [...answer.headers, ...headers] };
}

function foreignForm(): ApiError {
  const sentence =
    'the form was not made for this browser, or was open for too long: connect again, and allow cookies of this page';
  return new ApiError('forbidden', sentence);
}

async function requestOf(
  { clients, baseUrl }: AuthorizeComponents,
  query: string,
  { network }: PageVisit,
): Promise<AuthorizeRequest> {
  if (query.length > limits.authorizeQueryCharactersMax)
    throw new OauthError('invalid_request', 'the request of the client is too long');
  const parameters = formParameters(query);
  const client = await findClient(clients, needed(parameters, 'client_id'), network);
  const redirectUri = redirectUriOf(parameters, client);
  try {
    return authorizeRequestOf(parameters, { client, resource: resourceOf(baseUrl) });
  } catch (error) {
    throw error instanceof OauthError ? new SendBack(redirectUri, stateOf(parameters), error) : error;
  }
}

interface SignInTry {
  readonly kind: 'sign-in' | 'sign-up';
  readonly email?: string;
  readonly name?: string;
  readonly problem?: string;
  readonly fields?: Readonly<Record<string, string>>;
}

function signInView(components: AuthorizeComponents, step: Step, tried: SignInTry): SignInView {
  const { kind, email = '', name = '', problem = null, fields = {} } = tried;
  const other = kind === 'sign-in' ? `&${screenParameter}=sign-up` : '';
  const otherHref = `${placeOf(components.baseUrl, 'authorize')}?${step.query}${other}`;
  return {
    kind,
    request: step.request,
    form: formOf(components, step),
    email,
    name,
    problem,
    fields,
    otherHref,
    forgotHref: `${pathOf(components.baseUrl)}/#/forgot`,
  };
}

async function signedIn(
  components: AuthorizeComponents,
  step: Step,
  {
    form,
    visit,
    kind,
  }: { readonly form: FormParameters; readonly visit: PageVisit; readonly kind: SignInTry['kind'] },
): Promise<Answer> {
  const email = form.get('email') ?? '';
  const name = form.get('name') ?? '';
  const password = form.get('password') ?? '';
  try {
    const personId =
      kind === 'sign-up'
        ? await visit.signUp({ name, email, password })
        : await visit.signIn({ email, password });
    return await consentPage(components, step, { personId });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    const fields = error.fields ?? {};
    const problem = Object.keys(fields).length === 0 ? sentenceOf(error.message) : 'Some of it will not do.';
    const view = signInView(components, step, { kind, email, name, problem, fields });
    const answer = page(components, view, step.request, error.status);
    if (error.retryAfter === undefined) return answer;
    return { ...answer, headers: [...answer.headers, ['retry-after', String(error.retryAfter)]] };
  }
}

async function allowed(
  components: AuthorizeComponents,
  step: Step,
  { form, visit }: { readonly form: FormParameters; readonly visit: PageVisit },
): Promise<Answer> {
  const { request } = step;
  const person = await personOfTicket(components, step, form.get('ticket') ?? '');
  if (person === null) {
    const problem = 'The page was open for too long: log in again.';
    return page(components, signInView(components, step, { kind: 'sign-in', problem }), request, 401);
  }
  const chosen = choiceOf(form);
  const again = (problem: string | null, fields: Readonly<Record<string, string>>, status: number) =>
    consentPage(components, step, { personId: person.id, chosen, problem, fields, status });
  const tenants = await activeTenants(components, person);
  const tenant = tenants.find(({ id }) => String(id) === chosen.tenant);
  if (tenant === undefined) return again('Choose a tenant that is there.', {}, 422);
  const { scope, namespaces, fields } = grantOf(chosen, request);
  if (Object.keys(fields).length > 0 || scope === null) return again('Some of it will not do.', fields, 422);
  try {
    await keepClient(components.clients, request.client);
    const { code, connectionId } = await components.connections.allow({
      tenantId: tenant.id,
      person,
      client: request.client,
      scope,
      namespaces,
      redirectUri: request.redirectUri,
      challenge: request.challenge,
    });
    visit.allowed({ tenantId: tenant.id, personId: person.id, connectionId, scope });
    return sendTo(components, request.redirectUri, { code, state: request.state });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return again(
      error.fields === undefined ? sentenceOf(error.message) : null,
      error.fields ?? {},
      error.status,
    );
  }
}

interface ConsentTry {
  readonly personId: PersonId;
  readonly chosen?: ConsentChoice;
  readonly problem?: string | null;
  readonly fields?: Readonly<Record<string, string>>;
  readonly status?: number;
}

async function consentPage(components: AuthorizeComponents, step: Step, tried: ConsentTry): Promise<Answer> {
  const { personId, problem = null, fields = {}, status = 200 } = tried;
  const person = await readPerson(components.store, personId);
  const tenants = person === null ? [] : await activeTenants(components, person);
  if (person === null || tenants.length === 0) {
    const sentence = 'none of your tenants can be used now: look at them in the console';
    throw new ApiError('forbidden', sentence);
  }
  const start = { tenant: String(person.defaultTenantId), access: 'read', reach: 'all', namespaces: '' };
  const ticket = await signConsentTicket(components.loginTokens, {
    personId,
    generation: person.generation,
    browser: ticketBrowser(step.browser),
  });
  const view: AuthorizeView = {
    kind: 'consent',
    request: step.request,
    form: formOf(components, step),
    ticket,
    email: person.email,
    tenants,
    chosen: tried.chosen ?? start,
    problem,
    fields,
    againHref: `${placeOf(components.baseUrl, 'authorize')}?${step.query}`,
  };
  return page(components, view, step.request, status);
}

async function personOfTicket(
  { loginTokens, store }: AuthorizeComponents,
  step: Step,
  text: string,
): Promise<Person | null> {
  const ticket = await verifyConsentTicket(loginTokens, text);
  if (ticket === null || ticket.browser !== ticketBrowser(step.browser)) return null;
  const person = await readPerson(store, ticket.personId);
  return person !== null && person.generation === ticket.generation ? person : null;
}

/** Those that a client could do something in. */
async function activeTenants(
  { tenants }: AuthorizeComponents,
  person: Person,
): Promise<readonly { readonly id: TenantId; readonly name: string }[]> {
  const all = await Promise.all(
    person.tenants.map(async ({ tenantId }) => ({ id: tenantId, tenant: await tenants.get(tenantId) })),
  );
  return all.flatMap(({ id, tenant }) =>
    tenant !== null && (tenant.status === 'active' || tenant.status === 'past_due')
      ? [{ id, name: tenant.name }]
      : [],
  );
}

function choiceOf(form: FormParameters): ConsentChoice {
  const of = (name: string) => form.get(name) ?? '';
  return { tenant: of('tenant'), access: of('access'), reach: of('reach'), namespaces: of('namespaces') };
}

/** What was chosen, or what is wrong with it by field. Nothing that is missing counts as more than was said. */
function grantOf(chosen: ConsentChoice, request: AuthorizeRequest) {
  const fields: Record<string, string> = {};
  const scope =
    chosen.access === 'write' && request.scope === 'write'
      ? 'write'
      : chosen.access === 'read'
        ? 'read'
        : null;
  if (scope === null) fields.access = 'choose what it may do';
  if (chosen.reach !== 'all' && chosen.reach !== 'some') fields.reach = 'choose all namespaces or some';
  const names = chosen.namespaces.split(/[\s,]+/).filter((name) => name !== '');
  const namespaces = chosen.reach === 'some' ? [...new Set(names)] : [];
  const problem = chosen.reach === 'some' ? namespacesProblem(namespaces) : namedInVain(names);
  if (problem !== null) fields.namespaces = problem;
  return { scope, namespaces, fields } as const;
}

/** Whoever has typed names means these, whatever is chosen above them: Enter in the field sends the form. */
function namedInVain(names: readonly string[]): string | null {
  return names.length === 0 ? null : 'all namespaces are chosen: choose only these, or name none';
}

function namespacesProblem(namespaces: readonly string[]): string | null {
  if (namespaces.length === 0) return 'name at least one, or choose all namespaces';
  if (namespaces.length > keyNamespacesMax)
    return `there can be ${keyNamespacesMax}: use a prefix such as notes-*`;
  for (const pattern of namespaces) {
    const problem = namespacePatternProblem(pattern);
    if (problem !== null) return `${pattern.slice(0, 80)} ${problem}`;
  }
  return null;
}

/** Back to the client, with who says so (RFC 9207). */
function sendTo(
  { baseUrl }: AuthorizeComponents,
  redirectUri: string,
  parameters: Readonly<Record<string, string | null>>,
): Answer {
  const location = redirectWith(redirectUri, { ...parameters, iss: baseUrl });
  const headers: HeaderList = [
    ['location', location],
    ['cache-control', 'no-store'],
    ['referrer-policy', 'no-referrer'],
  ];
  return { status: 303, headers, body: '', contentType: 'text/plain; charset=utf-8' };
}

/**
 * Neither scripts nor frames; styles and the icon are this server's. A form goes to this server, and from there to where the
 * client is, which browsers hold against `form-action` as well, with all that the client sends them on to.
 */
function page(
  { frame }: Pick<AuthorizeComponents, 'frame'>,
  view: AuthorizeView,
  request: AuthorizeRequest | null,
  status = 200,
): Answer {
  const { protocol } = request === null ? { protocol: 'https:' } : new URL(request.redirectUri);
  const targets = new Set(["'self'", 'https:', protocol]);
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    `form-action ${[...targets].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  const headers: HeaderList = [
    ['content-security-policy', policy],
    ['cache-control', 'no-store'],
    // Not `no-referrer`: browsers would send `Origin: null` with the forms.
    ['referrer-policy', 'same-origin'],
    ['cross-origin-opener-policy', 'same-origin'],
    ['cross-origin-resource-policy', 'same-origin'],
    ['x-frame-options', 'DENY'],
  ];
  return { status, headers, body: authorizeDocument(view, frame()), contentType: 'text/html; charset=utf-8' };
}

function formOf({ baseUrl, formKey }: AuthorizeComponents, { query, browser }: Step) {
  return { action: placeOf(baseUrl, 'authorize'), query, csrf: csrfOf(formKey, browser) };
}

function withoutScreen(query: string): string {
  return query
    .split('&')
    .filter((part) => !part.startsWith(`${screenParameter}=`))
    .join('&');
}

/** The interface's own sentence, with a capital and a full stop. */
function sentenceOf(text: string): string {
  // Names of parameters are as they are.
  const first = /^\w+_/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(first) ? first : `${first}.`;
}
