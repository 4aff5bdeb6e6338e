/**
 * Where mails go while there is no mail server: each is a text file that names whom it is for. Plain text and not a MIME
 * message, which would break the link into pieces that only a mail program puts together again.
 *
 * The file's path is logged, and nothing of what is in it. Names sort by time; the oldest files go.
 */
import { mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { type Random, randomHex } from '../base/random.ts';
import type { MailCarrier } from './mail-queue.ts';
import type { Mail } from './mails.ts';

export interface OutboxComponents {
  readonly folder: string;
  readonly from: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

const draftEnd = '.draft';

export function outboxCarrier(components: OutboxComponents): MailCarrier {
  const { folder, clock, random, logger, from } = components;
  return {
    async carry(mail) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const date = new Date(clock.now());
      const name = `${date.toISOString().replaceAll(':', '')}-${randomHex(random, 4)}-${mail.kind}.txt`;
      const file = join(folder, name);
      await writeWhole(file, letterOf(mail, { from, date }));
      await removeOldest(folder);
      logger.info('no SMTP_URL is set: a mail is a file', { kind: mail.kind, file });
    },
    close() {},
  };
}

function letterOf(
  { to, subject, text }: Mail,
  { from, date }: { readonly from: string; readonly date: Date },
): string {
  const head = [
    `From: ${from}`,
    `To: ${to.name} <${to.address}>`,
    `Date: ${date.toUTCString()}`,
    `Subject: ${subject}`,
  ];
  return `${head.join('\n')}\n\n${text}`;
}

/** Whoever watches the folder never sees half a mail. It is for its owner's eyes: it holds a link that lets in. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = `${file}${draftEnd}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(text);
  } finally {
    await handle.close();
  }
  await rename(draft, file);
}

/** Drafts of a killed process are among them, and sort by their time too. */
async function removeOldest(folder: string): Promise<void> {
  const names = (await readdir(folder)).sort();
  for (const name of names.slice(0, -limits.outboxFilesMax)) await rm(join(folder, name), { force: true });
}
