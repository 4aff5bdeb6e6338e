import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadTests, measurements, proofs } from '../load-tests/commands.ts';
import { operationList } from '../protocol/operations.ts';
import { formats, wireHistory, wireVersion } from '../protocol/version.ts';
import { formatsNow } from './support/format-samples.ts';
import { filesUnder, readSources, repositoryRoot } from './support/repository.ts';
import {
  deadLinkProblems,
  deadPlaceProblems,
  leaningCommentProblems,
  lostDecisionProblems,
  lostFileProblems,
  lostNameProblems,
  lowEssayProblems,
  misplacedEssayProblems,
  namedFiles,
  outsidePageProblems,
  readmeLengthProblems,
  unshownFormatProblems,
} from './support/tidy-documents.ts';
import {
  assembly,
  browser,
  entries,
  longFiles,
  programs,
  roomsOfPlacedEssays,
  roomsOfWholeComments,
  sides,
  storedShapes,
  strangers,
} from './support/tidy-floors.ts';
import { nameListProblems, unservedProblems } from './support/tidy-operations.ts';
import {
  cycleProblems,
  deadFileProblems,
  doorProblems,
  doubledNameProblems,
  type FormatRecord,
  fileLengthProblems,
  floorProblems,
  formatProblems,
  leftoverProblems,
  recordedFormats,
  scanFiles,
  startedFiles,
  storedShapeProblems,
  strangerProblems,
  unreadLimitProblems,
} from './support/tidy-rules.ts';
import { errorSentenceProblems } from './support/tidy-sentences.ts';
import { hiddenStateProblems } from './support/tidy-state.ts';

const root = repositoryRoot();
const files = scanFiles(readSources(root));
const documents = readDocuments();
const manifest: {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
} = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
/** A person reads the list that `npm run` prints: measurements and proofs have lists of their own. */
const scriptsMax = 14;
const formatsPath = join(root, 'test/golden/formats.json');

/** README and every file below the folders of sources. */
function everyFile(): string[] {
  const below = ['protocol', 'src', 'actors', 'test', 'load-tests', 'deploy'].flatMap((folder) =>
    filesUnder(root, folder),
  );
  return ['README.md', ...below];
}

function textsOf(paths: readonly string[]): ReadonlyMap<string, string> {
  return new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]));
}

/** README and every Markdown file below the folders of sources: path to text. */
function readDocuments(): ReadonlyMap<string, string> {
  return textsOf(everyFile().filter((path) => path.endsWith('.md')));
}

/** What people write that is no document: sources, scripts, and files of settings. */
function everyText(): ReadonlyMap<string, string> {
  return textsOf(everyFile().filter((path) => /\.(ts|sh|css|json|yml|service|example)$/.test(path)));
}

const none = (problems: readonly string[]) => assert.equal(problems.join('\n'), '');

describe('the house is tidy', () => {
  it('was read at all', () => {
    assert.ok(files.size > 100, `only ${files.size} files`);
    assert.ok([...files.values()].some((file) => file.imports.length > 10));
  });

  it('imports run down the floors, and the two sides do not meet', () => {
    none([...floorProblems(files, sides), ...strangerProblems(files, strangers)]);
  });

  it('what is stored has shapes of its own, apart from messages', () => {
    const stores = [...files.values()].filter(({ imports }) =>
      imports.some(({ specifier }) => specifier.endsWith('base/record.ts')),
    );
    assert.ok(stores.length > 8, `only ${stores.length} files write records`);
    none(storedShapeProblems(files, storedShapes));
  });

  it('no name is exported twice', () => none(doubledNameProblems(files, [browser])));

  it('imports run in no circle', () => none(cycleProblems(files)));

  it('each outside package has one door', () => {
    const dependencies = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies });
    const development = Object.keys(manifest.devDependencies);
    none(doorProblems(files, { dependencies, programs, development }));
  });

  it('every file is imported by somebody, or somebody can start it', () => {
    const lines = [...measurements, ...proofs, loadTests].flatMap(({ steps }) =>
      steps.flatMap(({ program }) => program),
    );
    const started = startedFiles([...Object.values(manifest.scripts), ...lines]);
    none(
      deadFileProblems(files, new Map([...entries, ...started.map((path) => [path, 'a command'] as const)])),
    );
  });

  it('`npm run` shows few commands, and each builds what it starts', () => {
    const scripts = Object.entries(manifest.scripts);
    assert.ok(scripts.length <= scriptsMax, `${scripts.length} scripts, of ${scriptsMax} at most`);
    for (const [name, line] of scripts
      .filter(([, line]) => line.includes('dist/'))
      .filter(([name]) => name !== 'build'))
      assert.match(line, /^npm run --silent build && exec node dist\/\S+\.js/, name);
  });

  it('no file is too long, but for a named few', () => none(fileLengthProblems(files, longFiles)));

  it('every limit is read by somebody', () => none(unreadLimitProblems(files, 'protocol/limits.ts')));

  it('nothing is left over', () => none(leftoverProblems(files)));

  it('operations are listed once', () => none(nameListProblems(readSources(root))));

  it('every operation that is built is done by whom its row names', () => {
    none(unservedProblems(operationList, readSources(root)));
  });

  it('no format changes without a line in protocol/version.ts', async () => {
    const now = await formatsNow(root);
    const recorded: FormatRecord = existsSync(formatsPath)
      ? JSON.parse(readFileSync(formatsPath, 'utf8'))
      : {};
    if (process.env.UPDATE_GOLDEN === '1') {
      writeFileSync(formatsPath, `${JSON.stringify(recordedFormats(now, recorded), null, 2)}\n`);
    }
    none(formatProblems(now, JSON.parse(readFileSync(formatsPath, 'utf8'))));
  });

  it('README is short, and leads to every decision', () => {
    none([...readmeLengthProblems(documents.get('README.md') ?? ''), ...lostDecisionProblems(documents)]);
  });

  it('links of documents lead to files', () => {
    assert.ok(documents.size > 10, `only ${documents.size} documents`);
    none(deadLinkProblems(documents, (path) => existsSync(join(root, path))));
  });

  it('links of documents lead to headings that there are', () => none(deadPlaceProblems(documents)));

  it('files and names that documents have are there', () => {
    const lost = lostFileProblems(documents, everyFile(), namedFiles.documents);
    none([...lost, ...lostNameProblems(documents, everyText())]);
  });

  it('files that comments name are there', () => {
    const comments = new Map([...files].map(([path, file]) => [path, file.comments]));
    none(lostFileProblems(comments, everyFile(), namedFiles.comments));
  });

  it('nothing rests on pages outside the repository', () => {
    const sources = [...readSources(root)].filter(([path]) => path !== 'test/tidy-rules.test.ts');
    none(outsidePageProblems(new Map([...documents, ...sources])));
  });

  it('doc comments stand alone', () => {
    const sources = [...readSources(root)].filter(([path]) => path !== 'test/tidy-rules.test.ts');
    none(leaningCommentProblems(new Map(sources), roomsOfWholeComments));
  });

  it('what a module keeps for its thread is listed in the README of its room', () => {
    none(hiddenStateProblems(files, documents, [browser, assembly]));
  });

  it('the essay of a file stands above its imports', () => none(lowEssayProblems(readSources(root))));

  it('the story of a file is not told on its first constant', () => {
    none(misplacedEssayProblems(readSources(root), roomsOfPlacedEssays));
  });

  it('errors speak in one style', () => none(errorSentenceProblems(files)));

  it('a page shows every format', () => {
    const versions = Object.fromEntries(
      Object.entries(formats).map(([name, { version }]) => [name, version]),
    );
    const sources = [...readSources(root)].filter(([path]) => !path.startsWith('test/'));
    none(unshownFormatProblems(documents.get('protocol/FORMATS.md') ?? '', versions, new Map(sources)));
  });

  it('every version of a format has its line of history', () => {
    for (const [name, { version, history }] of Object.entries(formats))
      assert.equal(history.length, version, name);
    assert.ok(wireHistory.at(-1)?.startsWith(`${wireVersion}:`));
  });
});
