import { escapeHtml } from '../base/html-text.ts';
import type { LinkKind, LinkToMail } from './links.ts';

/** A mail: whom it is for, and its words. */
export interface Mail {
  /** What it is for, in a log and in a file's name. */
  readonly kind: LinkKind;
  readonly to: { readonly name: string; readonly address: string };
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

interface Words {
  readonly subject: string;
  readonly path: string;
  readonly before: string;
  readonly button: string;
  readonly after: string;
}

const words: Readonly<Record<LinkKind, Words>> = {
  verify: {
    subject: 'Confirm your e-mail address for Tidebase',
    path: '/verify',
    before:
      'Somebody, most likely you, signed up for Tidebase with this address. Open this link to confirm it:',
    button: 'Confirm the address',
    after: 'The link works once, for seven days. If it was not you, there is nothing to do.',
  },
  reset: {
    subject: 'Set a new password for Tidebase',
    path: '/reset',
    before:
      'Somebody, most likely you, asked to set a new password for Tidebase. Open this link to choose one:',
    button: 'Set a new password',
    after:
      'The link works once, for an hour. If it was not you, do nothing: the old password goes on working.',
  },
};

/**
 * `baseUrl` has no slash at its end. The name stands in the head alone: sign-up takes any name for any address, and a name
 * in the text would let anybody write to anybody in our name.
 */
export function mailOf({ kind, person, token }: LinkToMail, baseUrl: string): Mail {
  const { subject, path, before, button, after } = words[kind];
  const link = `${baseUrl}${path}?token=${token}`;
  return {
    kind,
    to: { name: person.name, address: person.email },
    subject,
    text: `${before}\n\n${link}\n\n${after}\n`,
    html: page({ subject, before, button, after, link: escapeHtml(link) }),
  };
}

/** Without images, styles of its own or anything to fetch: mail programs show it as it is. */
function page(parts: {
  readonly subject: string;
  readonly before: string;
  readonly button: string;
  readonly after: string;
  readonly link: string;
}): string {
  const { subject, before, button, after, link } = parts;
  const paragraph = '<p style="margin: 0 0 16px">';
  const look =
    'display: inline-block; padding: 10px 18px; border-radius: 6px; background: #0b5c7a; color: #ffffff; ' +
    'text-decoration: none';
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${subject}</title></head>
<body style="margin: 0; padding: 24px; font: 16px/1.5 sans-serif; color: #1a2329; background: #ffffff">
<div style="max-width: 36em">
${paragraph}${before}</p>
${paragraph}<a href="${link}" style="${look}">${button}</a></p>
${paragraph}Or copy it into your browser:<br><a href="${link}" style="color: #0b5c7a">${link}</a></p>
<p style="margin: 0; color: #55636c">${after}</p>
</div>
</body>
</html>
`;
}
