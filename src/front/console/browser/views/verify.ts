import { announce } from '../announce.ts';
import { call } from '../api.ts';
import type { View } from '../app.ts';
import { element, onClick, refill } from '../element.ts';
import { whileBusy } from '../notices.ts';

/**
 * The page that the link of a verification mail leads to. A button, and not the mere visit, verifies: scanners of mail open
 * every link before its reader does, and would use the token up.
 */
export function verifyView(token: string | null): View {
  const title = 'Confirm your e-mail address';
  const place = element('div', { class: 'stack' });
  if (token === null) refill(place, missingToken());
  else {
    const problems = element('div', {});
    const confirm = element('button', { type: 'button', class: 'primary' }, 'Confirm');
    onClick(confirm, () => {
      void whileBusy(confirm, problems, async () => {
        await call('POST', '/v1/email/verify', { token });
        const way = element('a', { href: '/console', class: 'button primary' }, 'Go to the console');
        refill(
          place,
          element('p', {}, 'Your address is confirmed: the whole plan is yours.'),
          element('p', {}, way),
        );
        announce('Your address is confirmed');
        way.focus();
      });
    });
    refill(place, element('p', {}, 'One click, and the whole plan is yours.'), confirm, problems);
  }
  return {
    title,
    body: element('div', { class: 'card narrow' }, element('h1', { tabindex: '-1' }, title), place),
  };
}

function missingToken(): HTMLElement {
  return element(
    'p',
    {},
    'This page needs the link of the mail that we sent: open it from there again. A new one can be sent from ',
    element('a', { href: '/console#/account' }, 'your account'),
    '.',
  );
}
