import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
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
import { sides, storedShapes, strangers } from './support/tidy-floors.ts';
import { nameListProblems, unservedProblems } from './support/tidy-operations.ts';
import {
  cycleProblems,
  deadFileProblems,
  doorProblems,
  doubledNameProblems,
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
import { importsOf, scanSource } from './support/tidy-source.ts';
import { hiddenStateProblems } from './support/tidy-state.ts';

const none = (problems: readonly string[]) => assert.equal(problems.join('\n'), '');
const scan = (sources: Record<string, string>) => scanFiles(new Map(Object.entries(sources)));
const imports = (...specifiers: string[]) =>
  specifiers.map((name) => `import { x } from '${name}';\n`).join('');

describe('the scanner of sources', () => {
  it('blanks comments, strings, templates and patterns, and nothing else', () => {
    const { code } = scanSource(
      `a('b // c', /['"]x/g, \`d \${e('f')} g\`) / 2; // h 'i'\nj /* ' */ = k / l / m; return /n'/;`,
    );

    assert.equal(code.replace(/ +/g, ' '), "a(' ', / /g, ` {e(' ')} `) / 2; \nj = k / l / m; return / /;");
  });

  it('finds every form of import, and what is gone after compilation', () => {
    const source = `
      import { a, type B } from './a.ts';
      import type { C } from './c.ts';
      import './d.ts';
      export { e } from './e.ts';
      export type * from './f.ts';
      const g = await import('./g.ts');
      const h = require('h');
      // import { i } from './i.ts';
      const j = "import { k } from './k.ts'";
      import {
        l,
      } from '@scope/l/part';
    `;

    const found = importsOf(scanSource(source)).map(({ specifier, typeOnly }) =>
      typeOnly ? `${specifier}?` : specifier,
    );

    assert.deepEqual(found.toSorted(), [
      './a.ts',
      './c.ts?',
      './d.ts',
      './e.ts',
      './f.ts?',
      './g.ts',
      '@scope/l/part',
      'h',
    ]);
  });
});

describe('the rule of operations that are listed once', () => {
  const problems = (source: string, path = 'src/a.ts') => nameListProblems(new Map([[path, source]])).length;

  it('finds sets, pairs, records and comparisons of names', () => {
    assert.equal(problems("new Set(['putDocuments', 'createKey'])"), 1);
    assert.equal(problems("new Set<string>([\n  'putDocuments',\n  internalCalls.noteUsage,\n])"), 1);
    assert.equal(problems("new Map([['putDocuments', 'put'], ['patchDocuments', 'patch']])"), 1);
    assert.equal(problems("const events = { createKey: 'key.created', revokeKey: 'key.revoked' };"), 1);
    assert.equal(problems("if (name === 'usage' || name === 'billing') f();"), 1);
  });

  it('leaves dispatch, the tables and other words alone', () => {
    assert.equal(problems("new Map([['createKey', createKey], ['revokeKey', (asked) => revoke(asked)]])"), 0);
    assert.equal(problems("switch (name) {\n  case 'createKey':\n  case 'revokeKey':\n}"), 0);
    assert.equal(problems("['putDocuments', 'createKey']", 'protocol/operations.ts'), 0);
    assert.equal(problems("// ['putDocuments', 'createKey']\\n['count', 'sum', 'text'];"), 0);
  });
});

describe('the rule of operations that somebody does', () => {
  const operation = { name: 'usage', built: true, serves: 'tenant', changes: null } as const;
  const problems = (source: string, path = 'actors/tenant/tenant-calls.ts', row = {}) =>
    unservedProblems([{ ...operation, ...row }], new Map([[path, source]]));

  it('finds one that is built and has no branch where its row says', () => {
    const [problem = ''] = problems("case 'billing':");
    assert.match(problem, /^usage is built, and nobody does it: add a branch .*tenant-calls\.ts/);
    assert.equal(problems("case 'usage':", 'actors/namespace/namespace-queries.ts').length, 1);
  });

  it('takes a case, a comparison and an entry of a table for a branch', () => {
    none(problems("case 'usage':"));
    none(problems("if (call.operation === 'usage') f();"));
    none(problems("[\n  'usage',\n  usage,\n]", 'src/front/a.ts', { serves: 'front' }));
  });

  it('lets those be that are not built, and those that change documents', () => {
    none(problems('', 'a.ts', { built: false }));
    none(problems('', 'a.ts', { changes: 'put' }));
  });
});

describe('the rule of floors', () => {
  const problems = (path: string, target: string, form = imports) =>
    floorProblems(scan({ [path]: form(target), 'src/main.ts': '' }), sides);

  it('allows what runs down, and neighbours in one folder', () => {
    none(problems('src/router/a.ts', '../auth/b.ts'));
    none(problems('src/router/a.ts', './b.ts'));
    none(problems('actors/search/a.ts', '../storage/b.ts'));
    none(problems('actors/tenant/a.ts', '../../src/accounts/b.ts'));
    none(problems('src/server.ts', './front/a.ts'));
  });

  it('refuses what runs up, type or value', () => {
    assert.match(
      problems('src/auth/a.ts', '../router/b.ts').join(),
      /src\/auth\/a\.ts:1: imports .* up a floor/,
    );
    assert.match(
      problems('actors/search/a.ts', '../namespace/b.ts', (to) => `import type { x } from '${to}';`).join(),
      /up/,
    );
    assert.match(problems('src/cli/a.ts', '../main.ts').join(), /up a floor/);
  });

  it('refuses what runs across', () => {
    assert.match(problems('actors/text/a.ts', '../vector/b.ts').join(), /across a floor/);
    assert.match(problems('actors/tenant/a.ts', '../namespace/b.ts').join(), /across/);
    assert.match(problems('src/base/a.ts', '../../protocol/errors.ts').join(), /across/);
  });

  it('refuses the other side, and tests', () => {
    assert.match(problems('actors/worker.ts', '../src/router/b.ts').join(), /not on the worker side/);
    assert.match(problems('src/router/a.ts', '../../actors/worker.ts').join(), /not on the front side/);
    assert.match(problems('src/router/a.ts', '../../test/support/b.ts').join(), /not on the front side/);
    assert.match(problems('protocol/a.ts', '../src/base/assert.ts').join(), /not on the words side/);
  });

  it('keeps what runs in a browser apart, and its own floors', () => {
    const browser = 'src/front/console/browser';
    none(problems(`${browser}/views/a.ts`, '../b.ts'));
    none(problems(`${browser}/main.ts`, './views/a.ts'));
    assert.match(problems(`${browser}/a.ts`, './views/b.ts').join(), /up a floor/);
    assert.match(problems(`${browser}/a.ts`, '../pages.ts').join(), /not on the browser side/);
    assert.match(problems(`${browser}/a.ts`, '../../../../protocol/b.ts').join(), /not on the browser side/);
    assert.match(problems('src/front/console/a.ts', './browser/b.ts').join(), /up a floor/);
  });

  it('refuses a file without a floor', () => {
    assert.match(problems('src/cellar/a.ts', './b.ts').join(), /has no floor/);
  });

  it('keeps strangers apart whatever the floors say', () => {
    const found = strangerProblems(
      scan({ 'src/object-store/a.ts': imports('../../protocol/errors.ts') }),
      strangers,
    );
    assert.match(found.join(), /knows nothing of protocol/);
  });
});

describe('the rule of doubled names', () => {
  const problems = (sources: Record<string, string>) => doubledNameProblems(scan(sources), ['src/browser']);

  it('finds a name that two files export, whatever it is', () => {
    assert.deepEqual(
      problems({ 'src/a.ts': 'export interface Slot {}', 'actors/b.ts': 'export const Slot = 1;' }),
      ['Slot is exported by src/a.ts and actors/b.ts: give one of them a name of its own'],
    );
    assert.match(
      problems({ 'src/a.ts': 'export async function f() {}', 'src/b.ts': 'export function* f() {}' }).join(),
      /^f is/,
    );
  });

  it('lets a program of its own, tests, comments and what is not exported have the same names', () => {
    none(
      problems({
        'src/a.ts': 'export type Scope = 1;',
        'src/browser/a.ts': 'export type Scope = 2;',
        'test/a.ts': 'export type Scope = 3;',
        'src/b.ts': 'type Scope = 4;\n// export type Scope = 5;\n',
      }),
    );
  });
});

describe('the rule of long files', () => {
  const problems = (lines: number, longFiles: readonly string[] = [], path = 'src/a.ts') =>
    fileLengthProblems(scan({ [path]: 'f();\n'.repeat(lines) }), new Set(longFiles)).join();

  it('counts lines, those of a named few up to more, and not those of tests', () => {
    assert.equal(problems(500), '');
    assert.equal(problems(900, [], 'test/a.ts'), '');
    assert.equal(problems(700, ['src/a.ts']), '');
    assert.match(problems(501), /src\/a\.ts: has 501 lines, of 500/);
    assert.match(problems(701, ['src/a.ts']), /of 700/);
  });

  it('finds a name of the few that is short again', () => {
    assert.match(problems(499, ['src/a.ts']), /calls src\/a\.ts long/);
  });
});

describe('the rule of stored shapes', () => {
  const problems = (sources: Record<string, string>) =>
    storedShapeProblems(scan(sources), storedShapes).join();
  const record = imports('../../src/base/record.ts');

  it('lets messages use stored shapes, and whoever stores nothing use both', () => {
    none([problems({ 'protocol/messages.ts': imports('./stored-tenant.ts') })]);
    none([
      problems({ 'actors/a/b.ts': imports('../../protocol/messages.ts', '../../protocol/stored-tenant.ts') }),
    ]);
    none([problems({ 'actors/a/b.ts': `${record}${imports('../../protocol/stored-tenant.ts')}` })]);
  });

  it('finds a stored shape among messages, by value and by type', () => {
    const type = "import type { x } from '../../protocol/messages.ts';\n";
    assert.match(
      problems({ 'actors/a/b.ts': record + type }),
      /actors\/a\/b\.ts:2: stores what it takes from/,
    );
    assert.match(problems({ 'protocol/stored-a.ts': imports('./messages.ts') }), /stored-a\.ts:1/);
  });
});

describe('the rules of documents', () => {
  const texts = (entries: Record<string, string>) => new Map(Object.entries(entries));

  it('count lines and their characters', () => {
    none(readmeLengthProblems('line\n'.repeat(150)));
    assert.match(readmeLengthProblems('line\n'.repeat(151)).join(), /has 151 lines, of 150/);
    assert.match(readmeLengthProblems(`short\n${'x'.repeat(141)}\n`).join(), /README\.md:2: has 141/);
  });

  it('follow links from the folder of their document, and leave the web and code alone', () => {
    const there = (path: string) => path === 'src/README.md' || path === 'src/a.ts';
    none(
      deadLinkProblems(
        texts({ 'src/README.md': '[a](a.ts) [b](../src/README.md#b) [c](https://c/d)' }),
        there,
      ),
    );
    none(deadLinkProblems(texts({ 'README.md': '```\n[a](gone.ts)\n```\n[b](#b)' }), there));
    assert.deepEqual(deadLinkProblems(texts({ 'src/README.md': '[a](gone.ts#a)' }), there), [
      'src/README.md: links to gone.ts, which is not there',
    ]);
  });

  it('find a link to a heading that is not there', () => {
    const problems = (link: string, room = '# Room\n\n## Add a field, `now`\n') =>
      deadPlaceProblems(texts({ 'README.md': `[a](${link})\n# Top\n`, 'src/README.md': room }));

    none(problems('src/README.md#add-a-field-now'));
    none(problems('#top'));
    none(problems('src/a.ts#anything'));
    assert.deepEqual(problems('src/README.md#add-a-row'), [
      'README.md: links to #add-a-row, and src/README.md has no such heading',
    ]);
    assert.equal(problems('src/README.md#add', '```\n# Add\n```\n').length, 1);
  });

  it('find a file that is named and not there', () => {
    const paths = ['src/a/b.ts', 'src/c/d.ts'];
    const problems = (name: string) =>
      lostFileProblems(texts({ 'src/a/README.md': `See \`${name}\`.` }), paths, namedFiles.documents);

    for (const name of ['b.ts', 'd.ts', 'a/b.ts', 'c/d.ts', 'src/c/d.ts']) none(problems(name));
    assert.deepEqual(problems('c/e.ts'), ['src/a/README.md: names c/e.ts, which is not there']);
    assert.equal(problems('e.ts').length, 1);
    const inComments = (text: string) =>
      lostFileProblems(texts({ 'src/a/b.ts': text }), paths, namedFiles.comments).length;
    assert.deepEqual([inComments('see d.ts and c/d.ts; *.test.ts'), inComments('see c/e.ts')], [0, 1]);
  });

  it('find a name of the code that no source has', () => {
    const problems = (name: string) =>
      lostNameProblems(
        texts({ 'README.md': `See \`${name}\`.` }),
        texts({ 'src/a.ts': 'runSearch(Page.take)' }),
      );

    for (const name of ['runSearch', 'Page.take', 'plain', 'npm run x', '#runSearch']) none(problems(name));
    assert.deepEqual(problems('runCount'), ['README.md: names runCount, which no source has']);
    assert.equal(problems('Page.takeAll').length, 1);
  });

  it('find the story of a file on its first constant', () => {
    const story = `/** ${'It tells how all of this file works. '.repeat(5)}*/\n`;
    const problems = (text: string) => misplacedEssayProblems(texts({ 'src/a.ts': text }), ['src']);
    const imported = "import { b } from './b.ts';\n\n";

    assert.equal(problems(`${imported}${story}const most = 3;\n`).length, 1);
    none(problems(`${story}${imported}const most = 3;\n`));
    none(problems(`${imported}${story}export class A {}\n`));
    none(problems(`${imported}/** The most of them. */\nconst most = 3;\n`));
  });

  it('find decisions that nobody finds', () => {
    const room = { 'src/README.md': 'Room.\n\n## Decisions\n' };
    none(lostDecisionProblems(texts({ 'README.md': '[src](src/README.md#decisions)', ...room })));
    assert.match(
      lostDecisionProblems(texts({ 'README.md': 'none', ...room })).join(),
      /src\/README\.md: has/,
    );
  });

  it('find a doc comment that leans on another line, on one line or on two', () => {
    const sources = texts({
      'src/a/b.ts': '/** Of a tenant. */\nx;\n/**\n * Of a key.\n */\n/** Often. */ // Of what follows.',
      'src/c/d.ts': '/** Of a tenant. */',
    });

    const found = leaningCommentProblems(sources, ['src/a']);

    assert.deepEqual(
      found.map((problem) => problem.slice(0, 11)),
      ['src/a/b.ts:', 'src/a/b.ts:'],
    );
    assert.match(found.join(), /b\.ts:1: .*b\.ts:3: /);
  });

  it('find an essay below the imports, and leave comments of declarations and of members alone', () => {
    const above = "/** All of it. */\nimport a from 'a';\n\n/** Says b. */\nconst b = 1;\n";

    none(
      lowEssayProblems(
        texts({ 'src/a.ts': above, 'src/b.ts': '/** No imports. */\n\n/** Says a. */\nconst a = 1;' }),
      ),
    );
    assert.match(
      lowEssayProblems(texts({ 'src/a.ts': `${above}\n/** More.\n * Lines. */\n\nf();` })).join(),
      /^src\/a\.ts:7: /,
    );
  });

  it('find a format, a number and a magic that the page of formats does not show', () => {
    const page = '| `log` | 2 |\n\n`TBLG`';
    const sources = texts({ 'src/a.ts': "const magic = 'TBLG'; // TBNO" });

    none(unshownFormatProblems(page, { log: 2 }, sources));
    assert.match(unshownFormatProblems(page, { log: 3 }, sources).join(), /no row `log` \| 3/);
    assert.match(unshownFormatProblems(page, { swept: 2 }, sources).join(), /no row `swept`/);
    assert.deepEqual(unshownFormatProblems(page, {}, texts({ 'src/a.ts': "f('TBXX')" })), [
      'src/a.ts: writes TBXX, which protocol/FORMATS.md does not show',
    ]);
  });

  it('find what is cited from outside', () => {
    none(outsidePageProblems(texts({ 'src/a.ts': '// see src/README.md and service.mdx' })));
    assert.match(
      outsidePageProblems(texts({ 'src/a.ts': '\n// as service.md says' })).join(),
      /a\.ts:2: cites/,
    );
  });
});

describe('the rule of circles', () => {
  it('finds a circle of values and shows it', () => {
    const circle = scan({
      'src/a.ts': imports('./b.ts'),
      'src/b.ts': imports('./c.ts'),
      'src/c.ts': imports('./b.ts'),
    });

    assert.deepEqual(cycleProblems(circle), ['a circle of imports: src/b.ts → src/c.ts → src/b.ts']);
  });

  it('counts types in the product, and not in tests', () => {
    const circle = (folder: string) =>
      scan({
        [`${folder}/a.ts`]: imports('./b.ts'),
        [`${folder}/b.ts`]: "import type { x } from './a.ts';",
      });

    assert.equal(cycleProblems(circle('src')).length, 1);
    none(cycleProblems(circle('test')));
  });

  it('does not count two ways to one file', () => {
    none(
      cycleProblems(
        scan({ 'src/a.ts': imports('./b.ts', './c.ts'), 'src/b.ts': imports('./c.ts'), 'src/c.ts': '' }),
      ),
    );
  });
});

describe('the rule of doors', () => {
  const check = (sources: Record<string, string>) =>
    doorProblems(scan(sources), {
      dependencies: ['zod', '@scope/p', 'typescript'],
      programs: ['typescript'],
      development: ['fast-check'],
    }).join('\n');
  const both = { 'src/a.ts': imports('zod', 'node:fs', './b.ts'), 'src/p.ts': imports('@scope/p/part') };

  it('allows one door each, and tests to import what they like', () => {
    assert.equal(check({ ...both, 'test/a.test.ts': imports('zod', 'fast-check') }), '');
  });

  it('refuses a second door, by import or by name', () => {
    assert.match(
      check({ ...both, 'actors/b.ts': imports('zod') }),
      /zod has several doors: src\/a\.ts, actors\/b\.ts/,
    );
    assert.match(check({ ...both, 'actors/b.ts': "load('zod/mini')" }), /zod has several doors/);
  });

  it('allows types of what is for development, through one door', () => {
    const types = "import type { x } from 'fast-check';\n";
    assert.equal(check({ ...both, 'src/t.ts': types }), '');
    assert.match(check({ ...both, 'src/t.ts': types, 'src/u.ts': types }), /fast-check has several doors/);
  });

  it('refuses what package.json does not promise, and what nobody imports', () => {
    assert.match(check({ ...both, 'src/c.ts': imports('fast-check') }), /fast-check, which is no dependency/);
    assert.match(check({ 'src/a.ts': imports('zod') }), /nobody imports @scope\/p/);
  });
});

describe('the rule of dead files', () => {
  const check = (
    sources: Record<string, string>,
    names: Record<string, string> = { 'src/main.ts': 'the command' },
  ) => deadFileProblems(scan({ 'src/main.ts': '', ...sources }), new Map(Object.entries(names)));

  it('finds a file that nobody imports, or only a test', () => {
    assert.deepEqual(check({ 'src/a.ts': '', 'test/src/a.test.ts': imports('../../src/a.ts') }), [
      'src/a.ts: nobody imports it',
    ]);
    assert.deepEqual(check({ 'test/support/a.ts': '' }), ['test/support/a.ts: nobody imports it']);
  });

  it('knows entries, files that start by themselves, and files started by name', () => {
    none(
      check({
        'test/bench/a.bench.ts': '',
        'test/a.test.ts': "fork('../support/b.js')",
        'test/support/b.ts': '',
      }),
    );
  });

  it('finds a program of load-tests that no command starts', () => {
    assert.deepEqual(check({ 'load-tests/a.ts': '' }), ['load-tests/a.ts: nobody imports it']);
    assert.deepEqual(
      startedFiles(['npm run build && exec node dist/load-tests/a.js b', '--test', 'dist/c.js']),
      ['load-tests/a.ts', 'c.ts'],
    );
  });

  it('finds an entry that is gone', () => {
    assert.match(check({}, { 'src/main.ts': '', 'src/old.ts': '' }).join(), /src\/old\.ts, which is gone/);
  });

  it('finds an entry that the product has come to import', () => {
    const sources = { 'src/main.ts': imports('./a.ts'), 'src/a.ts': '' };

    assert.match(
      check(sources, { 'src/main.ts': '', 'src/a.ts': '' }).join(),
      /src\/a\.ts, which is imported/,
    );
  });
});

describe('the rule of limits', () => {
  const table =
    "export const limits = {\n  /** Why. */\n  aMax: 1,\n  bMs: 2,\n} as const;\nif (limits.bMs > 1) throw new Error('');\n";
  const check = (reader: string) =>
    unreadLimitProblems(scan({ 'protocol/limits.ts': table, 'src/a.ts': reader }), 'protocol/limits.ts');

  it('finds a limit that nobody reads, relations aside', () => {
    assert.deepEqual(check('use(limits.aMax); // limits.bMs'), ['protocol/limits.ts: nobody reads bMs']);
  });

  it('knows reading by name and by taking apart', () => {
    none(check('use(limits.aMax); const { bMs } = limits;'));
  });

  it('fails where it finds no table', () => {
    assert.match(
      unreadLimitProblems(scan({ 'protocol/limits.ts': '' }), 'protocol/limits.ts').join(),
      /no table/,
    );
  });
});

describe('the rule of leftovers', () => {
  const check = (text: string, path = 'src/front/a.ts') =>
    leftoverProblems(scan({ [path]: text })).join('\n');

  it('finds each of them, with its line', () => {
    // Put together here, so that this file has none of them.
    for (const text of [
      `test${'.only'}('a', () => {});`,
      `test('a', { only${': true'} }, () => {});`,
      `console${'.log'}(1);`,
      `// TO${'DO'}: later`,
      `// @ts${'-ignore'}`,
      `const now = Date${'.now'}();`,
      `const now = new ${'Date'}();`,
      `Math${'.random'}();`,
      `set${'Timeout'}(run, 1);`,
      `const a = b${'!'}.c;`,
      `const a = b[0]${'!'};`,
      `const a = b as ${'any'};`,
      `function f(a: ${'any'}) {}`,
    ]) {
      assert.match(check(`\n${text}`), /^src\/front\/a\.ts:2: /, text);
    }
  });

  it('does not mistake words, comments, strings and comparisons for them', () => {
    none([
      check(
        "// setTimeout( is not ours; as any: of these\nconst a = 'console.log'; if (b !== c && !d) e(`TODO`);\n",
      ),
    ]);
    none([check("app.any('/*', handler);\ninterface App { any(pattern: string): App; }")]);
  });

  it('lets the ground and the tests have clocks and chance', () => {
    const text = `Date${'.now'}(); Math${'.random'}(); set${'Timeout'}(run, 1);`;
    assert.equal(check(text, 'src/base/clock.ts'), '');
    assert.equal(check(text, 'test/a.test.ts'), '');
    assert.notEqual(check(text, 'protocol/a.ts'), '');
  });
});

describe('the rule of formats', () => {
  const before = { log: { version: '1', history: ['Records.'], digest: 'aa' } };
  const changed = { log: { version: '1', history: ['Records.'], digest: 'bb' } };
  const announced = { log: { version: '2', history: ['Records.', 'Longer records.'], digest: 'bb' } };

  it('finds bytes that changed without a word', () => {
    none(formatProblems(before, before));
    assert.match(
      formatProblems(changed, before).join(),
      /"log" has changed: raise formats\.log\.version.* in protocol\/version\.ts, then record it/,
    );
  });

  it('asks for a record of what was announced, and takes it', () => {
    assert.match(formatProblems(announced, before).join(), /record it/);
    none(formatProblems(announced, recordedFormats(announced, before)));
  });

  it('never records what was not announced', () => {
    assert.deepEqual(recordedFormats(changed, before), before);
  });

  it('finds a format that is gone, and one that is new', () => {
    assert.match(formatProblems({}, before).join(), /is gone/);
    assert.match(formatProblems(before, {}).join(), /is new/);
    assert.deepEqual(recordedFormats(before, {}), before);
  });
});

describe('the rule of error sentences', () => {
  const problems = (source: string) => errorSentenceProblems(scan({ 'src/a.ts': source })).length;

  it('finds capitals and full stops in errors, assertions, refusals and sentences', () => {
    assert.equal(problems("throw new ApiError('bad_request', 'The body is late');"), 1);
    assert.equal(problems("must(a, 'a tenant.');"), 1);
    assert.equal(problems('throw refused(`a length of ${' + 'b}.`);'), 1);
    assert.equal(problems("const sentence = 'Try again';"), 1);
    assert.equal(problems('assert(a, () => `Rows ${' + "b(')')} and more!`);"), 2);
  });

  it('leaves names, quotes, pieces of templates and other texts alone', () => {
    assert.equal(problems('throw new SqlError("GROUP BY takes keys. Content-Length: \'A b.\' fits");'), 0);
    assert.equal(
      problems('throw new ApiError(code, `${' + 'a} Keys, and so on …`, { headers: [["Allow"]] });'),
      0,
    );
    assert.equal(problems("title('Log in to connect.'); const a = 'The plan.';"), 0);
  });
});

describe('the rule of hidden state', () => {
  const readme =
    'A room.\n\n## State of a thread\n\n* `a.ts` `last`, `b.ts` `kept` and `seen`: why.\n\n## Decisions\n';
  const problems = (sources: Record<string, string>, text = readme) =>
    hiddenStateProblems(scan(sources), new Map([['src/room/README.md', text]]), ['src/room/page']);
  const a = 'let last = 0;\n';
  const b = 'const kept = new WeakMap<Query, Map<string, number>>();\nexport let seen = 0;\n';

  it('takes what is listed with its file, tables, what is inside of something, and a page of its own', () => {
    const table =
      'const table = new Map([[1, 2]]);\nconst none: ReadonlySet<string> = new Set();\nfunction f() {\n  let x = 0;\n}\n';
    none(
      problems({ 'src/room/a.ts': a + table, 'src/room/b.ts': b, 'src/room/page/c.ts': 'let page = 1;\n' }),
    );
  });

  it('finds what is not listed, or under another file, and what is gone', () => {
    assert.match(
      problems({ 'src/room/a.ts': a, 'src/room/b.ts': `${b}let more = 1;\n` }).join(),
      /^src\/room\/b\.ts: keeps more/,
    );
    assert.deepEqual(problems({ 'src/room/a.ts': a, 'src/room/b.ts': b }, 'A room.').length, 3);
    assert.match(problems({ 'src/room/a.ts': a, 'src/room/b.ts': a + b }).join(), /b\.ts: keeps last/);
    assert.deepEqual(problems({ 'src/room/b.ts': b }), [
      'src/room/README.md: lists src/room/a.ts last, which is gone',
    ]);
  });
});
