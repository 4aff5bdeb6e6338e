/** The first page: what this is, and the way in. */
import { call } from '../api.ts';
import type { View } from '../app.ts';
import { snippet } from '../copy.ts';
import { type Child, element } from '../element.ts';
import { passwordField, textField } from '../fields.ts';
import { form } from '../form.ts';
import type { SignedUp } from '../shapes.ts';

export type Begin = (token: string, firstKey: string | null) => void;

export function welcomeView(begin: Begin, isLoggedIn: boolean): View {
  return {
    title: 'Search database',
    body: element(
      'div',
      { class: 'welcome' },
      element(
        'div',
        { class: 'pitch' },
        element('h1', { tabindex: '-1' }, 'Search everything you write, exactly.'),
        element(
          'p',
          { class: 'lead' },
          'Tidebase keeps documents in plain object storage and finds them by text, regular expression, filter, meaning and SQL. A write is durable when it is acknowledged, and every read after it sees it.',
        ),
        element(
          'ul',
          { class: 'points' },
          points.map(([title, text]) => element('li', {}, element('strong', {}, title), ` ${text}`)),
        ),
      ),
      isLoggedIn ? goOn() : signUp(begin),
      element(
        'section',
        { class: 'taste', 'aria-labelledby': 'taste' },
        element('h2', { id: 'taste' }, 'One request to write, one to find'),
        snippet(tasteText(), 'Example of a write and a search'),
      ),
    ),
  };
}

const points = [
  ['Text and regex,', 'with exact counts and the line of every match.'],
  ['Vectors and meaning,', 'alone or together with text and filters.'],
  ['SQL over metadata,', 'for the numbers behind the documents.'],
  ['Idle costs nothing', 'but the bytes that are stored.'],
] as const;

function tasteText(): string {
  return [
    `curl ${location.origin}/v1/namespaces/notes/docs -H "X-API-Key: $TIDEBASE_API_KEY" \\`,
    `  -d '{"docs": [{"id": "noon", "text": "The tide turns at noon.", "meta": {"year": 2026}}]}'`,
    '',
    `curl ${location.origin}/v1/namespaces/notes/search -H "X-API-Key: $TIDEBASE_API_KEY" \\`,
    `  -d '{"q": "tide", "filter": {"year": {"gte": 2026}}}'`,
  ].join('\n');
}

function goOn(): Child {
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'go-on' },
    element('h2', { id: 'go-on' }, 'You are logged in'),
    element('p', {}, element('a', { href: '/console', class: 'button primary' }, 'Open the console')),
  );
}

function signUp(begin: Begin): Child {
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'sign-up' },
    element('h2', { id: 'sign-up' }, 'Create an account'),
    form({
      fields: [
        textField({ name: 'name', label: 'Name' }, { autocomplete: 'name', required: true }),
        textField(
          { name: 'email', label: 'E-mail' },
          { type: 'email', autocomplete: 'email', required: true },
        ),
        passwordField(
          { name: 'password', label: 'Password', hint: 'At least 8 characters.' },
          'new-password',
        ),
      ],
      submit: 'Sign up',
      async send({ name, email, password }) {
        const { key } = await call<SignedUp>('POST', '/v1/signup', { name, email, password });
        const { token } = await call<{ token: string }>('POST', '/v1/login', { email, password });
        begin(token, key);
      },
    }),
    element('p', { class: 'aside' }, 'Have an account? ', element('a', { href: '/#/login' }, 'Log in')),
  );
}
