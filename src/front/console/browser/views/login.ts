import { call } from '../api.ts';
import type { View } from '../app.ts';
import { element } from '../element.ts';
import { passwordField, textField } from '../fields.ts';
import { form } from '../form.ts';
import { notice } from '../notices.ts';
import type { Begin } from './welcome.ts';

export function loginView(begin: Begin, reason: string | null): View {
  return {
    title: 'Log in',
    body: element(
      'div',
      { class: 'card narrow' },
      element('h1', { tabindex: '-1' }, 'Log in'),
      reason === null ? null : notice('warning', element('p', {}, reason)),
      form({
        fields: [
          textField(
            { name: 'email', label: 'E-mail' },
            { type: 'email', autocomplete: 'username', required: true },
          ),
          passwordField({ name: 'password', label: 'Password' }, 'current-password'),
        ],
        submit: 'Log in',
        async send({ email, password }) {
          const { token } = await call<{ token: string }>('POST', '/v1/login', { email, password });
          begin(token, null);
        },
      }),
      element(
        'p',
        { class: 'aside' },
        element('a', { href: '/#/forgot' }, 'Forgot your password?'),
        ' · ',
        element('a', { href: '/' }, 'Create an account'),
      ),
    ),
  };
}
