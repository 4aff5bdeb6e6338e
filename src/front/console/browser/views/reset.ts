import { announce } from '../announce.ts';
import { call } from '../api.ts';
import type { View } from '../app.ts';
import { element, refill } from '../element.ts';
import { passwordField } from '../fields.ts';
import { form } from '../form.ts';

/** The page that the link of a reset mail leads to. */
export function resetView(token: string | null, endLogin: () => void): View {
  const title = 'Set a new password';
  const place = element('div', { class: 'stack' });
  const setPassword = form({
    fields: [
      passwordField(
        { name: 'password', label: 'New password', hint: 'At least 8 characters.' },
        'new-password',
      ),
    ],
    submit: 'Set the password',
    async send({ password }) {
      await call('POST', '/v1/password/reset', { token, password });
      // Every login of before has ended with the old password, this browser's too.
      endLogin();
      const way = element('a', { href: '/#/login', class: 'button primary' }, 'Log in');
      refill(
        place,
        element('p', {}, 'The new password is set, and every earlier login has ended.'),
        element('p', {}, way),
      );
      announce('The new password is set');
      way.focus();
    },
  });
  const missing = element(
    'p',
    {},
    'This page needs the link of the mail that we sent: open it from there again, or ',
    element('a', { href: '/#/forgot' }, 'ask for a new one'),
    '.',
  );
  refill(place, token === null ? missing : setPassword);
  return {
    title,
    body: element('div', { class: 'card narrow' }, element('h1', { tabindex: '-1' }, title), place),
  };
}
