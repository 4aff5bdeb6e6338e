/** Mails of a server that has no mail server: files in its outbox, which is made with the first of them, behind the answers. */
import { basename, join } from 'node:path';
import { eventually } from './eventually.ts';
import { filesBelow, readIfThere } from './living-folder.ts';

export interface Letter {
  readonly file: string;
  /** `verify`, `reset`: how its name ends. */
  readonly kind: string;
  readonly to: string;
  readonly link: string;
  readonly token: string;
}

/** The letters of a data folder so far, oldest first. */
export function lettersIn(dataFolder: string): Letter[] {
  const files = filesBelow(join(dataFolder, 'outbox')).filter((file) => file.endsWith('.txt'));
  return files.sort().flatMap((file) => {
    const text = readIfThere(file)?.toString();
    if (text === undefined) return [];
    const [, link = '', token = ''] = /^(\S+\?token=(\S+))$/m.exec(text) ?? [];
    const kind = /-([a-z]+)\.txt$/.exec(basename(file))?.[1] ?? '';
    return [{ file, kind, to: /^To: (.*)$/m.exec(text)?.[1] ?? '', link, token }];
  });
}

/** Those that are wanted, once there are so many of them. */
export async function lettersOnceThere(
  dataFolder: string,
  isWanted: (letter: Letter) => boolean,
  count = 1,
): Promise<Letter[]> {
  let letters: Letter[] = [];
  await eventually(
    () => {
      letters = lettersIn(dataFolder).filter(isWanted);
      return letters.length >= count;
    },
    () => `${letters.length} of ${count} letters have come`,
  );
  return letters;
}
