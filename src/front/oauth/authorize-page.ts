/**
 * What a person sees when a client asks to connect: sign in or sign up, then say what it may have. Pure. The pages work without
 * JavaScript and have none; they look like the console's, whose style sheet they use.
 */
import type { AuthorizeRequest } from '../../oauth/authorize-request.ts';
import { isDocumentId } from '../../oauth/metadata-document.ts';
import { isLoopbackUri, redirectHost } from '../../oauth/redirect-uri.ts';
import { type Html, html } from './html.ts';

export interface PageFrame {
  /** Addresses of the console's files. */
  readonly stylesheet: string;
  readonly icon: string;
}

/** What every form sends back as it was. */
export interface FormFrame {
  /** Where it goes. */
  readonly action: string;
  /** The client's request: the query as it came. */
  readonly query: string;
  /** What only this browser's form can say. */
  readonly csrf: string;
}

export interface SignInView {
  readonly kind: 'sign-in' | 'sign-up';
  readonly request: AuthorizeRequest;
  readonly form: FormFrame;
  readonly email: string;
  readonly name: string;
  /** A sentence about the form, and what is wrong with its fields. */
  readonly problem: string | null;
  readonly fields: Readonly<Record<string, string>>;
  /** The address of this page, with the other of the two forms. */
  readonly otherHref: string;
  /** The address of the page where a person asks for a new password. */
  readonly forgotHref: string;
}

export interface ConsentView {
  readonly kind: 'consent';
  readonly request: AuthorizeRequest;
  readonly form: FormFrame;
  readonly ticket: string;
  readonly email: string;
  readonly tenants: readonly { readonly id: number; readonly name: string }[];
  readonly chosen: ConsentChoice;
  readonly problem: string | null;
  readonly fields: Readonly<Record<string, string>>;
  /** The address of this page from its beginning. */
  readonly againHref: string;
}

/** What a person has chosen on the page so far, as it was typed. */
export interface ConsentChoice {
  readonly tenant: string;
  readonly access: string;
  readonly reach: string;
  readonly namespaces: string;
}

export interface ProblemView {
  readonly kind: 'problem';
  readonly title: string;
  readonly sentence: string;
  /** Where the client hears of it, if the person goes there; null where nobody is to be sent anywhere. */
  readonly back: { readonly href: string; readonly host: string } | null;
}

export type AuthorizeView = SignInView | ConsentView | ProblemView;

export function authorizeDocument(view: AuthorizeView, { stylesheet, icon }: PageFrame): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${titleOf(view)} – Tidebase</title>
<link rel="icon" href="${icon}" type="image/svg+xml">
<link rel="stylesheet" href="${stylesheet}">
</head>
<body>
<div class="public">
<header class="top"><span class="brand">${mark}<span>Tidebase</span></span></header>
<main id="main"><div class="card narrow">
${bodyOf(view)}
</div></main>
</div>
</body>
</html>
`.markup;
}

const mark = html`<svg viewBox="0 0 24 24" width="26" height="26" aria-hidden="true" class="mark"><rect width="24" height="24" rx="6"></rect><path d="M3 10c3-3 6-3 9 0s6 3 9 0"></path><path d="M3 15.5c3-3 6-3 9 0s6 3 9 0"></path></svg>`;

function titleOf(view: AuthorizeView): string {
  if (view.kind === 'problem') return view.title;
  return view.kind === 'consent'
    ? 'Allow access'
    : view.kind === 'sign-in'
      ? 'Log in to connect'
      : 'Sign up to connect';
}

function bodyOf(view: AuthorizeView): Html {
  switch (view.kind) {
    case 'problem':
      return html`<h1>${view.title}</h1><div class="notice danger" role="alert"><p>${view.sentence}</p></div>
<p class="aside">You were sent nowhere, and nothing was allowed. Close this page, and connect again from the program.</p>
${view.back === null ? null : html`<p class="aside">Or, where you know it, <a href="${view.back.href}" rel="noreferrer">go back to ${view.back.host}</a>, which is then told why.</p>`}`;
    case 'consent':
      return consentBody(view);
    default:
      return signInBody(view);
  }
}

function signInBody(view: SignInView): Html {
  const isNew = view.kind === 'sign-up';
  const { request, fields, email, name } = view;
  return html`<h1>${isNew ? 'Sign up' : 'Log in'} to connect</h1>
<p><strong>${request.client.name}</strong> asks to use your Tidebase documents. You say what it may have after you have ${isNew ? 'signed up' : 'logged in'}.</p>
${clientFacts(request)}
${problemNotice(view.problem)}
<form class="form" method="post" action="${view.form.action}">
${hiddenFields(view.form)}
${isNew ? textField({ name: 'name', label: 'Name', type: 'text', autocomplete: 'name', value: name, problem: fields.name }) : null}
${textField({ name: 'email', label: 'E-mail', type: 'email', autocomplete: isNew ? 'email' : 'username', value: email, problem: fields.email })}
${textField({ name: 'password', label: 'Password', type: 'password', autocomplete: isNew ? 'new-password' : 'current-password', value: '', problem: fields.password, hint: isNew ? 'At least 8 characters.' : undefined })}
<div class="actions"><button type="submit" class="primary" name="action" value="${view.kind}">${isNew ? 'Sign up' : 'Log in'}</button></div>
</form>
<p class="aside">${isNew ? 'Have an account? ' : 'No account yet? '}<a href="${view.otherHref}">${isNew ? 'Log in' : 'Create one'}</a>${isNew ? null : html` · <a href="${view.forgotHref}">Forgot your password?</a>`}</p>`;
}

function consentBody(view: ConsentView): Html {
  const { request, chosen, fields } = view;
  return html`<h1>Allow access?</h1>
<p><strong>${request.client.name}</strong> asks to use your Tidebase documents.</p>
${clientFacts(request)}
${problemNotice(view.problem)}
<form class="form" method="post" action="${view.form.action}">
${hiddenFields(view.form)}
<input type="hidden" name="ticket" value="${view.ticket}">
${tenantField(view)}
<fieldset class="choice stacked"><legend>It may</legend>
${radio({ name: 'access', value: 'read', chosen: chosen.access, label: 'Read', hint: 'search, count, SQL, and single documents' })}
${request.scope === 'write' ? radio({ name: 'access', value: 'write', chosen: chosen.access, label: 'Read and write', hint: 'and write, change and delete documents and namespaces' }) : null}
${fieldProblem(fields.access)}</fieldset>
<fieldset class="choice stacked"><legend>In</legend>
${radio({ name: 'reach', value: 'all', chosen: chosen.reach, label: 'All namespaces', hint: 'those too that will be made' })}
${radio({ name: 'reach', value: 'some', chosen: chosen.reach, label: 'Only these:', hint: null })}
${textField({ name: 'namespaces', label: 'Namespaces', type: 'text', autocomplete: 'off', value: chosen.namespaces, problem: fields.namespaces, hint: 'Names or prefix*, with commas.', isOptional: true })}
${fieldProblem(fields.reach)}</fieldset>
<div class="actions"><button type="submit" class="primary" name="action" value="allow">Allow</button><button type="submit" class="quiet" name="action" value="deny">Deny</button></div>
</form>
<p class="aside">You are logged in as ${view.email}. <a href="${view.againHref}">Use another account</a></p>
<p class="aside">It ends when you end it, in the console under Connections, and after 90 days without use.</p>`;
}

function clientFacts({ client, redirectUri }: AuthorizeRequest): Html {
  const document = isDocumentId(client.id)
    ? html`<div><dt>Described at</dt><dd>${new URL(client.id).host}</dd></div>`
    : null;
  const loopback = isLoopbackUri(redirectUri)
    ? html`<div class="notice warning"><p>The answer goes to a program on this computer. Go on only if you have just started it yourself.</p></div>`
    : null;
  return html`<dl class="client-facts">${document}<div><dt>Sends you to</dt><dd>${redirectHost(redirectUri)}</dd></div></dl>
${loopback}`;
}

function tenantField({ tenants, chosen }: ConsentView): Html {
  const [only] = tenants;
  if (tenants.length === 1 && only !== undefined)
    return html`<input type="hidden" name="tenant" value="${only.id}">
<p class="field"><span class="label">Tenant</span> <span>${only.name}</span></p>`;
  const options = tenants.map(({ id, name }) =>
    String(id) === chosen.tenant
      ? html`<option value="${id}" selected>${name}</option>`
      : html`<option value="${id}">${name}</option>`,
  );
  return html`<div class="field"><label for="tenant">Tenant</label><select id="tenant" name="tenant">${options}</select></div>`;
}

function hiddenFields({ query, csrf }: FormFrame): Html {
  return html`<input type="hidden" name="request" value="${query}">
<input type="hidden" name="csrf" value="${csrf}">`;
}

function radio(parts: {
  readonly name: string;
  readonly value: string;
  readonly chosen: string;
  readonly label: string;
  readonly hint: string | null;
}): Html {
  const { name, value, label, hint } = parts;
  const id = `${name}-${value}`;
  const checked = value === parts.chosen ? html` checked` : null;
  return html`<label class="option" for="${id}"><input type="radio" id="${id}" name="${name}" value="${value}"${checked}><span>${label}${hint === null ? null : html` <span class="hint">${hint}</span>`}</span></label>
`;
}

function textField(parts: {
  readonly name: string;
  readonly label: string;
  readonly type: string;
  readonly autocomplete: string;
  readonly value: string;
  readonly problem: string | undefined;
  readonly hint?: string | undefined;
  readonly isOptional?: boolean;
}): Html {
  const { name, label, type, autocomplete, value, problem, hint, isOptional = false } = parts;
  const described = [
    hint === undefined ? '' : `${name}-hint`,
    problem === undefined ? '' : `${name}-problem`,
  ];
  const invalid = problem === undefined ? null : html` aria-invalid="true"`;
  const required = isOptional ? null : html` required`;
  return html`<div class="field"><label for="${name}">${label}</label><input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" value="${value}" aria-describedby="${described.join(' ').trim()}"${invalid}${required}>${hint === undefined ? null : html`<p id="${name}-hint" class="hint">${hint}</p>`}${problem === undefined ? null : html`<p id="${name}-problem" class="problem">${problem}</p>`}</div>`;
}

function fieldProblem(problem: string | undefined): Html | null {
  return problem === undefined ? null : html`<p class="problem">${problem}</p>`;
}

function problemNotice(problem: string | null): Html | null {
  return problem === null ? null : html`<div class="notice danger" role="alert"><p>${problem}</p></div>`;
}
