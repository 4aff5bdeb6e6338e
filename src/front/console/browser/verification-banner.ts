import { call } from './api.ts';
import type { App } from './app.ts';
import { type Child, element, onClick, refill } from './element.ts';
import { mailFiles } from './mail-files.ts';
import { notice, whileBusy } from './notices.ts';

/** Says that an address is not verified: until it is, an account has a hundredth of its plan, and should know why. */
export function verificationBanner(app: App): Child {
  const { person } = app.me;
  if (person === null || person.verified) return null;
  const folder = mailFiles();
  return element(
    'div',
    { class: 'banner', role: 'region', 'aria-label': 'E-mail not verified' },
    element(
      'p',
      {},
      element('strong', {}, 'Your e-mail address is not verified. '),
      'Until it is, the free plan is cut to a small share. ',
      folder === null
        ? ['Open the link that we sent to ', element('span', { class: 'breakable' }, person.email), '.']
        : [
            'This server has no mail server, so mails are files: open the link in the newest file whose name ends with -verify.txt in ',
            element('code', { class: 'breakable' }, folder),
            '.',
          ],
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
      refill(answer, notice('good', element('p', {}, newLinkWords(mailFiles()))));
    });
  });
  return element('div', { class: 'resend' }, button, answer);
}

function newLinkWords(folder: string | null): string {
  return folder === null ? 'A new link is on its way.' : `A new link is in the newest file in ${folder}.`;
}
