/**
 * The door to nodemailer: mails by SMTP. Loaded with the first mail, because it takes longer than the rest of a start and most
 * servers on somebody's own machine have no mail server.
 */
import type { SendMailOptions, Transporter } from 'nodemailer';
import { limits } from '../../protocol/limits.ts';
import { type MailCarrier, MailRefused, MailServerLacksTls } from './mail-queue.ts';

export interface SmtpOptions {
  /** `smtp://user:password@host:port`; nodemailer's options may follow as a query. */
  readonly url: string;
  /**
   * `required`: a mail, which holds a link that lets in, and a password leave this machine under TLS or not at all.
   * `optional`: under TLS where the mail server offers it.
   */
  readonly tls: SmtpTls;
  /** `Name <address>` or an address. */
  readonly from: string;
}

export type SmtpTls = 'required' | 'optional';

/** From this number on a mail server's answer means that it will never take the mail. */
const permanentFrom = 500;

export function smtpCarrier({ url, from, tls }: SmtpOptions): MailCarrier {
  let opening: Promise<Transporter> | null = null;
  // A connection that is still open would hold up the end of the process.
  const closing = new AbortController();
  const transport = () => {
    opening ??= openTransport(url, tls);
    return opening;
  };
  return {
    async carry({ to, subject, text, html }) {
      const smtp = await transport();
      // Newer than the declarations of the library.
      const options: SendMailOptions & { readonly signal: AbortSignal } = {
        from,
        to,
        subject,
        text,
        html,
        signal: closing.signal,
      };
      try {
        await smtp.sendMail(options);
      } catch (error) {
        throw refusalOf(error) ?? error;
      }
    },
    close() {
      closing.abort();
      opening?.then((smtp) => smtp.close()).catch(() => {});
    },
  };
}

async function openTransport(url: string, tls: SmtpTls): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    requireTLS: tls === 'required',
    connectionTimeout: limits.mailSilentMsMax,
    greetingTimeout: limits.mailSilentMsMax,
    socketTimeout: limits.mailSilentMsMax,
    dnsTimeout: limits.mailSilentMsMax,
    // Nothing of a mail is to be read from a file or fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** The refusal that an error is; null where trying again may help. */
function refusalOf(error: unknown): MailRefused | null {
  const { responseCode, code } = error as { readonly responseCode?: unknown; readonly code?: unknown };
  if (typeof responseCode !== 'number' || responseCode < permanentFrom) return null;
  if (code !== 'ETLS') return new MailRefused('the mail server refused a mail', { cause: error });
  const sentence =
    'the mail server offers no TLS (STARTTLS), and mails hold links that let in: use a mail server that does, ' +
    'smtps:// in SMTP_URL, or TIDEBASE_SMTP_TLS=optional to send them unencrypted';
  return new MailServerLacksTls(sentence, { cause: error });
}
