/**
 * `npm run measure -- stored-bytes`: what real text takes in the store, against its own bytes. Folders of source code and of prose of
 * this machine (or those that are given as arguments, each on its own) are loaded by `tidebase load`, the server is
 * stopped in order, which flushes everything, and the files under `objects/` are added up by kind, the log left out: it is
 * collected. Segments that a compaction has replaced are kept for a quarter of an hour and told apart. Ends with 1 where
 * the bar is missed.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { copyCorpus, readCorpus } from './corpus.ts';
import { isQuick, type Judge, judged } from './judge.ts';
import { runLoad } from './load-command.ts';
import { Connections, type MeasuredServer, restartMeasured, startMeasured } from './measured-server.ts';
import { temporaryFolder } from './server.ts';

const ratioMax = 0.7;
const bytesMin = 1e6;

const folders = isQuick
  ? { 'source code': ['node_modules/typescript', 'protocol', 'actors', 'src'], prose: ['/usr/share/doc/git'] }
  : {
      'source code': ['node_modules', '/usr/include', '/usr/lib/python3', '/usr/share/perl'],
      prose: ['/usr/share/doc', '/usr/share/man', '/usr/share/common-licenses', '/usr/share/info'],
    };

await judged(async (judge) => {
  const given = process.argv.slice(2).filter((word) => !word.startsWith('--'));
  const cases =
    given.length > 0 ? given.map((folder) => [folder, [folder]] as const) : Object.entries(folders);
  for (const [name, from] of cases) {
    const copied = temporaryFolder();
    for (const [i, folder] of from.entries())
      if (existsSync(folder)) copyCorpus(resolve(folder), join(copied, String(i)));
    await measure(judge, name, copied);
  }
});

async function measure(judge: Judge, name: string, folder: string): Promise<void> {
  const corpus = readCorpus(folder);
  let raw = 0;
  for (const text of corpus.texts.values()) raw += text.length;
  if (raw < bytesMin) return judge.say(`${name}: left out, this machine has only ${raw} bytes of it`);
  const server = await startMeasured();
  const { code, output, errors } = await runLoad([folder, '--namespace', 'text'], {
    url: server.process.url,
    key: server.key,
  });
  if (code !== 0) throw new Error(`tidebase load ended with ${code}: ${output}${errors}`);
  await server.process.stop();
  const byKind = bytesOnDisk(join(server.process.folder, 'objects'));
  const lives = await storedBytes(server);
  tell(judge, { name, raw, files: corpus.texts.size, byKind, lives });
}

/** What the namespace consists of: without segments that only wait for their deletion. */
async function storedBytes(stopped: MeasuredServer): Promise<number> {
  const again = await restartMeasured({ ...stopped, process: { ...stopped.process, stop: async () => {} } });
  const client = new Connections(again.process.url, again.key, 1);
  const { stored_bytes: bytes } = JSON.parse(await client.get('/v1/namespaces/text')) as {
    stored_bytes: number;
  };
  client.close();
  await again.process.stop();
  return bytes;
}

function tell(
  { tell, say }: Judge,
  run: {
    readonly name: string;
    readonly raw: number;
    readonly files: number;
    readonly byKind: ReadonlyMap<string, number>;
    readonly lives: number;
  },
): void {
  const { name, raw, files, byKind, lives } = run;
  const onDisk = [...byKind].reduce((sum, [kind, bytes]) => sum + (kind === 'log' ? 0 : bytes), 0);
  const others = onDisk - (byKind.get('ns') ?? 0);
  const ratio = (lives + others) / raw;
  tell({
    name: `stored bytes, ${name}`,
    value: `${ratio.toFixed(3)} of the text`,
    bar: `≤ ${ratioMax}`,
    ok: ratio <= ratioMax,
    note:
      `${files} files, ${(raw / 1e6).toFixed(1)} MB; the namespace ${(lives / 1e6).toFixed(1)} MB, everything else but the log ` +
      `${(others / 1e6).toFixed(2)} MB; with replaced segments ${(onDisk / raw).toFixed(3)} of the text`,
  });
  for (const [kind, bytes] of byKind)
    say(
      `    ${kind.padEnd(18)} ${(bytes / 1e6).toFixed(2).padStart(11)} MB ${(bytes / raw).toFixed(3).padStart(8)} of the text`,
    );
}

/** By the first part of the key; files that the store keeps for itself count too. */
function bytesOnDisk(root: string): ReadonlyMap<string, number> {
  const sizeOf = (path: string): number =>
    statSync(path).isDirectory()
      ? readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
      : statSync(path).size;
  return new Map(readdirSync(root).map((name) => [name, sizeOf(join(root, name))]));
}
