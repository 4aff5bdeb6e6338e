import { call } from './api.ts';
import type { App } from './app.ts';
import { type Child, element, onClick, refill } from './element.ts';
import { notice, whileBusy } from './notices.ts';

/** Until the address is verified, an account has a hundredth of its plan, and should know why. */
export function verificationBanner(app: App): Child {
  const { person } = app.me;
  if (person === null || person.verified) return null;
  return element(
    'div',
    { class: 'banner', role: 'region', 'aria-label': 'E-mail not verified' },
    element(
      'p',
      {},
      element('strong', {}, 'Your e-mail address is not verified. '),
      'Until it is, the free plan is cut to a small share. Open the link that we sent to ',
      element('span', { class: 'breakable' }, person.email),
      '.',
    ),
    resendButton(app),
  );
}

export function resendButton(app: App): HTMLElement {
  const answer = element('div', { role: 'status' });
  const button = element('button', { type: 'button', class: 'quiet' }, 'Send the link again');
  onClick(button, () => {
    void whileBusy(button, answer, async () => {
      const { verified } = await call<{ verified: boolean }>('POST', '/v1/email/verify/resend');
      if (verified) return app.refresh();
      refill(answer, notice('good', element('p', {}, 'A new link is on its way.')));
    });
  });
  return element('div', { class: 'resend' }, button, answer);
}
