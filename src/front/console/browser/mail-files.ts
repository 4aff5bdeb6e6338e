/**
 * Says where the mails of a server without a mail server are, as words: a folder. Null where mails are sent. Whoever tries the
 * server on their own machine would otherwise wait for a mail that never comes.
 */
export function mailFiles(): string | null {
  const fact = document.querySelector<HTMLMetaElement>('meta[name="tidebase-mail-files"]');
  return fact?.content ?? null;
}
