import type { SendMailOptions, Transporter } from 'nodemailer';
import { limits } from '../../protocol/limits.ts';
import { type MailCarrier, MailRefused } from './mail-queue.ts';

/**
 * The door to nodemailer: mails by SMTP. Loaded with the first mail, because it takes longer than the rest of a start and most
 * servers on somebody's own machine have no mail server.
 */
export interface SmtpOptions {
  /** `smtp://user:password@host:port`; nodemailer's options may follow as a query. */
  readonly url: string;
  /** `Name <address>` or an address. */
  readonly from: string;
}

/** From here on a mail server's answer means never. */
const permanentFrom = 500;

export function smtpCarrier({ url, from }: SmtpOptions): MailCarrier {
  let opening: Promise<Transporter> | null = null;
  // A connection that is still open would hold up the end of the process.
  const closing = new AbortController();
  const transport = () => {
    opening ??= openTransport(url);
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
        throw isPermanent(error)
          ? new MailRefused('the mail server refused a mail', { cause: error })
          : error;
      }
    },
    close() {
      closing.abort();
      opening?.then((smtp) => smtp.close()).catch(() => {});
    },
  };
}

async function openTransport(url: string): Promise<Transporter> {
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    connectionTimeout: limits.mailSilentMsMax,
    greetingTimeout: limits.mailSilentMsMax,
    socketTimeout: limits.mailSilentMsMax,
    dnsTimeout: limits.mailSilentMsMax,
    // Nothing of a mail is to be read from a file or fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

function isPermanent(error: unknown): boolean {
  const { responseCode } = error as { readonly responseCode?: unknown };
  return typeof responseCode === 'number' && responseCode >= permanentFrom;
}
