import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { missingPrograms } from '../outside-programs.ts';
import { quoted } from '../re2-oracle.ts';
import { temporaryFolder } from '../server.ts';
import { debianFiles } from './debian-files.ts';
import { NotHere, type Peer, type Question, unasked } from './peer.ts';

const run = promisify(execFile);
/** It leaves out files of more than 20,000 trigrams. */
const linesOfFile = 100;

export const csearch: Peer = {
  name: 'csearch',
  about: 'a process for each question, over its index of files of 100 lines',
  async open({ rows }) {
    const bin = missingPrograms('csearch', 'cindex').length === 0 ? '' : join(await unpacked(), 'usr/bin/');
    const folder = temporaryFolder();
    for (let from = 0; from < rows.length; from += linesOfFile) {
      const lines = rows.slice(from, from + linesOfFile).map(({ text }) => `${text}\n`);
      writeFileSync(join(folder, `${String(from).padStart(8, '0')}.log`), lines.join(''));
    }
    const env = { ...process.env, CSEARCHINDEX: join(temporaryFolder(), 'index') };
    await run(`${bin}cindex`, [folder], { env });
    return {
      version: 'of Debian',
      kinds: ['rare', 'word', 'regex'],
      async ask(question: Question) {
        const { text, regex } = question;
        const pattern = text === undefined ? (regex ?? unasked(question)) : quoted(text);
        const found = await run(`${bin}csearch`, ['-c', '-h', pattern], { env, maxBuffer: 2 ** 26 }).catch(
          (error: { readonly code?: unknown }) => {
            if (error.code !== 1) throw error;
            return { stdout: '' };
          },
        );
        return [...found.stdout.matchAll(/(\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
      },
      close: async () => undefined,
    };
  },
};

async function unpacked(): Promise<string> {
  try {
    return await debianFiles('codesearch', { packages: ['codesearch'] });
  } catch (error) {
    throw new NotHere(`csearch can't be had: ${String(error).slice(0, 200)}`);
  }
}
