import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { missingPrograms } from '../outside-programs.ts';
import { NotHere, type Peer, type Question, unasked } from './peer.ts';

const run = promisify(execFile);

export const ripgrep: Peer = {
  name: 'ripgrep',
  about: 'a process for each question, which reads all lines by two threads',
  async open({ textFile }) {
    if (missingPrograms('rg').length > 0) throw new NotHere('rg is not installed: apt-get install ripgrep');
    const { stdout } = await run('rg', ['--version']);
    return {
      version: /ripgrep (\S+)/.exec(stdout)?.[1] ?? '',
      kinds: ['rare', 'word', 'regex'],
      async ask(question: Question) {
        const { text, regex } = question;
        const pattern = text === undefined ? [regex ?? unasked(question)] : ['-F', text];
        // 1 means that nothing matched, and then there is no count.
        const found = await run('rg', ['--no-config', '-c', '-j2', ...pattern, textFile]).catch(
          (error: { readonly code?: unknown }) => {
            if (error.code !== 1) throw error;
            return { stdout: '0' };
          },
        );
        return Number(found.stdout);
      },
      close: async () => undefined,
    };
  },
};
