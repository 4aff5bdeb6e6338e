import { announce } from '../announce.ts';
import { call } from '../api.ts';
import type { View } from '../app.ts';
import { element, refill } from '../element.ts';
import { textField } from '../fields.ts';
import { form } from '../form.ts';
import { mailFiles } from '../mail-files.ts';

export function forgotView(): View {
  const place = element('div', { class: 'stack' });
  refill(
    place,
    element(
      'p',
      {},
      'Tell us your address, and we send a link that sets a new password. It works once, for an hour.',
    ),
    form({
      fields: [
        textField(
          { name: 'email', label: 'E-mail' },
          { type: 'email', autocomplete: 'email', required: true },
        ),
      ],
      submit: 'Send the link',
      async send({ email }) {
        await call('POST', '/v1/password/forgot', { email });
        // The same words whether or not there is such an account: this page must not tell who has one.
        refill(place, element('p', {}, linkWords(mailFiles())));
        announce('The request was sent');
      },
    }),
  );
  return {
    title: 'Forgot password',
    body: element(
      'div',
      { class: 'card narrow' },
      element('h1', { tabindex: '-1' }, 'Forgot your password?'),
      place,
      element('p', { class: 'aside' }, element('a', { href: '/#/login' }, 'Back to log in')),
    ),
  };
}

function linkWords(folder: string | null): string {
  const known = 'If there is an account with this address, the link is';
  return folder === null ? `${known} on its way.` : `${known} in the newest file in ${folder}.`;
}
