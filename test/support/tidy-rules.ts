/**
 * The rules that keep the house as it is: each is a pure function from files to sentences, one a violation. What they
 * know of this house is in tidy-floors.ts.
 */
import {
  type Import,
  importsOf,
  lineAt,
  packageOf,
  resolveImport,
  type ScannedSource,
  scanSource,
} from './tidy-source.ts';

export interface SourceFile extends ScannedSource {
  readonly path: string;
  readonly imports: readonly Import[];
}

export type Files = ReadonlyMap<string, SourceFile>;

export function scanFiles(sources: ReadonlyMap<string, string>): Files {
  return new Map(
    [...sources].map(([path, text]) => {
      const scanned = scanSource(text);
      return [path, { path, ...scanned, imports: importsOf(scanned) }];
    }),
  );
}

/**
 * From the lowest floor up. A unit is a folder, or a file by its path; units of one floor don't know each other. Of units
 * within each other, a file belongs to the innermost.
 */
export type Floors = readonly (readonly string[])[];

/** One side of the house: what a unit may import, from the ground up. */
export interface Side {
  readonly name: string;
  readonly floors: Floors;
  /** Folders whose files all must have a place on a floor of this side. */
  readonly owns: readonly string[];
}

/** An import up or across a floor, of the other side, of tests; and a file that has no floor. */
export function floorProblems(files: Files, sides: readonly Side[]): string[] {
  return sides.flatMap((side) =>
    [...files.values()]
      .filter((file) => side.owns.some((folder) => isIn(file.path, folder)))
      .flatMap((file) => {
        const home = unitOf(side.floors, file.path);
        if (home === null) return [`${file.path}: has no floor; give it one in tidy-floors.ts`];
        return ownImports(file).flatMap(({ target, line }) => {
          const there = unitOf(side.floors, target);
          const place = `${file.path}:${line}: imports ${target},`;
          if (there === null) return [`${place} which is not on the ${side.name} side`];
          if (there.unit === home.unit || there.floor < home.floor) return [];
          return [`${place} ${there.floor > home.floor ? 'up' : 'across'} a floor`];
        });
      }),
  );
}

interface Place {
  readonly unit: string;
  readonly floor: number;
}

function unitOf(floors: Floors, path: string): Place | null {
  const places = floors.flatMap((units, floor) => units.map((unit) => ({ unit, floor })));
  const around = places.filter(({ unit }) => isIn(path, unit));
  return around.toSorted((a, b) => b.unit.length - a.unit.length)[0] ?? null;
}

function isIn(path: string, unit: string): boolean {
  return path === unit || path.startsWith(`${unit}/`);
}

function ownImports(
  file: SourceFile,
): { readonly target: string; readonly typeOnly: boolean; readonly line: number }[] {
  return file.imports.flatMap(({ specifier, typeOnly, line }) => {
    const target = resolveImport(file.path, specifier);
    return target === null ? [] : [{ target, typeOnly, line }];
  });
}

/** A unit that must not know another, whatever the floors say: [who, whom]. */
export function strangerProblems(files: Files, strangers: readonly (readonly [string, string])[]): string[] {
  return strangers.flatMap(([who, whom]) =>
    [...files.values()]
      .filter((file) => isIn(file.path, who))
      .flatMap((file) =>
        ownImports(file)
          .filter(({ target }) => isIn(target, whom))
          .map(
            ({ target, line }) => `${file.path}:${line}: imports ${target}; ${who} knows nothing of ${whom}`,
          ),
      ),
  );
}

/**
 * A file that writes or reads durable bytes and takes a shape from what crosses threads: that changes with every build, and what
 * is stored changes only with its format's version. `durable`: the file whose importers write records; `messages`: the shapes
 * that are not stored; `shapes`: how files of stored shapes begin.
 */
export function storedShapeProblems(
  files: Files,
  house: { readonly durable: string; readonly messages: readonly string[]; readonly shapes: string },
): string[] {
  return [...files.values()]
    .filter(({ path }) => !path.startsWith('test/'))
    .flatMap((file) => {
      const imports = ownImports(file);
      const stores =
        file.path.startsWith(house.shapes) || imports.some(({ target }) => target === house.durable);
      if (!stores) return [];
      return imports
        .filter(({ target }) => house.messages.includes(target))
        .map(
          ({ target, line }) =>
            `${file.path}:${line}: stores what it takes from ${target}; put it into ${house.shapes}*`,
        );
    });
}

/**
 * A name that two files of one program export: a reader who finds one of them takes it for the other. `apart`: folders that are
 * programs of their own.
 */
export function doubledNameProblems(files: Files, apart: readonly string[]): string[] {
  const places = new Map<string, string[]>();
  for (const { path, code } of files.values()) {
    if (/^(?:test|load-tests)\//.test(path)) continue;
    const program = apart.find((folder) => isIn(path, folder)) ?? '';
    for (const [, name] of code.matchAll(exportedName)) {
      const key = `${program} ${name}`;
      places.set(key, [...(places.get(key) ?? []), path]);
    }
  }
  return [...places]
    .filter(([, paths]) => paths.length > 1)
    .map(
      ([key, paths]) =>
        `${key.split(' ')[1]} is exported by ${paths.join(' and ')}: give one of them a name of its own`,
    );
}

const fileLinesMax = 500;
const longFileLinesMax = 700;

/** A file of the product, or of load-tests, that is too long to be read at once; `longFiles` may be somewhat longer. */
export function fileLengthProblems(files: Files, longFiles: ReadonlySet<string>): string[] {
  const problems = [...files.values()]
    .filter(({ path }) => !path.startsWith('test/'))
    .map(({ path, code }) => ({
      path,
      lines: code.trimEnd().split('\n').length,
      most: longFiles.has(path) ? longFileLinesMax : fileLinesMax,
    }))
    .filter(({ lines, most }) => lines > most)
    .map(
      ({ path, lines, most }) =>
        `${path}: has ${lines} lines, of ${most}: take a part of it into a file of its own`,
    );
  const short = [...longFiles].filter(
    (path) => (files.get(path)?.code.split('\n').length ?? 0) <= fileLinesMax,
  );
  return [...problems, ...short.map((path) => `tidy-floors.ts: calls ${path} long, which it is not`)];
}

const exportedName =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;

/**
 * A circle of imports. Of those that are still there at run time, whichever file is loaded first sees the others half
 * made. In the product imports of types count too: files that know each other can't be read, moved or replaced one by one.
 */
export function cycleProblems(files: Files): string[] {
  const problems: string[] = [];
  const done = new Set<string>();
  const trail: string[] = [];
  const visit = (path: string): void => {
    const from = trail.indexOf(path);
    if (from >= 0) {
      problems.push(`a circle of imports: ${[...trail.slice(from), path].join(' → ')}`);
      return;
    }
    const file = files.get(path);
    if (file === undefined || done.has(path)) return;
    trail.push(path);
    for (const { target, typeOnly } of ownImports(file)) if (!typeOnly || isProduct(path)) visit(target);
    trail.pop();
    done.add(path);
  };
  for (const path of files.keys()) visit(path);
  return problems;
}

export interface Packages {
  /** Those that `npm start` needs. */
  readonly dependencies: readonly string[];
  /** For development; the product may import their types. */
  readonly development?: readonly string[];
  /** Used by no import: run as a program. */
  readonly programs: readonly string[];
}

/** An outside package imported at a second door, or by product code that package.json does not promise it to; or by nobody. */
export function doorProblems(files: Files, packages: Packages): string[] {
  const doors = new Map<string, Set<string>>(packages.dependencies.map((name) => [name, new Set()]));
  const problems: string[] = [];
  for (const file of files.values()) {
    if (!isProduct(file.path)) continue;
    for (const name of typePackagesIn(file, packages))
      doors.set(name, (doors.get(name) ?? new Set()).add(file.path));
    for (const name of packagesIn(file, packages)) {
      const known = doors.get(name);
      if (known === undefined)
        problems.push(`${file.path}: imports ${name}, which is no dependency of the product`);
      else known.add(file.path);
    }
  }
  for (const [name, [door, ...others]] of doors) {
    if (door === undefined && !packages.programs.includes(name))
      problems.push(`package.json: nobody imports ${name}`);
    if (others.length > 0) problems.push(`${name} has several doors: ${[door, ...others].join(', ')}`);
  }
  return problems;
}

/** Packages of development whose types alone are imported: nothing of them runs in the product. */
function typePackagesIn(file: SourceFile, { development = [] }: Packages): string[] {
  return file.imports
    .flatMap(({ specifier, typeOnly }) => (typeOnly ? (packageOf(specifier) ?? []) : []))
    .filter((name) => development.includes(name));
}

/** Packages may also be loaded by a computed name: a dependency's name in a string counts as an import. */
function packagesIn(file: SourceFile, packages: Packages): Set<string> {
  const types = typePackagesIn(file, packages);
  const imported = file.imports.flatMap(({ specifier, typeOnly }) => {
    const name = packageOf(specifier);
    return name === null || (typeOnly && types.includes(name)) ? [] : [name];
  });
  const named = file.strings.map(({ value }) => packageOf(value) ?? '');
  return new Set([...imported, ...named.filter((name) => packages.dependencies.includes(name))]);
}

function isProduct(path: string): boolean {
  return ['protocol', 'src', 'actors'].some((folder) => isIn(path, folder));
}

/** Files that somebody starts by name, and twins that only tests use. Each with its reason. */
export type Entries = ReadonlyMap<string, string>;

/** A file that nobody imports. A test that imports a file of the product does not keep it alive. */
export function deadFileProblems(files: Files, entries: Entries): string[] {
  const used = new Set<string>();
  for (const file of files.values()) {
    for (const { target } of ownImports(file)) {
      if (isProduct(file.path) || !isProduct(target)) used.add(target);
    }
  }
  const texts = [...files.values()].flatMap((file) => file.strings.map(({ value }) => value));
  // Child processes and worker threads are started by the name of their compiled file.
  const isNamed = (path: string) =>
    texts.some((text) => text.endsWith(`/${baseName(path).replace(/\.ts$/, '.js')}`));
  const dead = [...files.keys()].filter(
    (path) => !used.has(path) && !entries.has(path) && !isStartedByItself(path) && !isNamed(path),
  );
  const gone = [...entries.keys()].filter((path) => !files.has(path));
  const imported = [...entries.keys()].filter((path) => used.has(path));
  return [
    ...dead.map((path) => `${path}: nobody imports it`),
    ...gone.map((path) => `tidy-floors.ts: names the entry ${path}, which is gone`),
    ...imported.map(
      (path) => `tidy-floors.ts: names the entry ${path}, which is imported: it needs no reason`,
    ),
  ];
}

/** Tests and benchmarks are started by their names. */
function isStartedByItself(path: string): boolean {
  return /\.(?:test|bench)\.ts$/.test(path);
}

/** The sources of the compiled files that scripts of package.json, or measurements and proofs, start. */
export function startedFiles(commandLines: readonly string[]): string[] {
  const found = commandLines.flatMap((line) => [...line.matchAll(/\bdist\/([\w./-]+)\.js\b/g)]);
  return [...new Set(found.map(([, name]) => `${name}.ts`))];
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** A limit that nobody reads promises what is not kept. Relations between limits do not count as reading. */
export function unreadLimitProblems(files: Files, limitsPath: string): string[] {
  const own = files.get(limitsPath);
  if (own === undefined) return [`${limitsPath}: is missing`];
  const table = /export const limits = \{([\s\S]*?)\n\} as const/.exec(own.code)?.[1] ?? '';
  const names = [...table.matchAll(/^ {2}(\w+):/gm)].map((match) => match[1] ?? '');
  if (names.length === 0) return [`${limitsPath}: no table of limits was found`];
  const readers = [...files.values()].filter((file) => isProduct(file.path) && file.path !== limitsPath);
  const isRead = (name: string) => {
    const reading = new RegExp(`\\blimits\\.${name}\\b|\\{[^{}]*\\b${name}\\b[^{}]*\\} = limits\\b`);
    return readers.some((file) => reading.test(file.code));
  };
  return names.filter((name) => !isRead(name)).map((name) => `${limitsPath}: nobody reads ${name}`);
}

interface Leftover {
  readonly pattern: RegExp;
  readonly meaning: string;
  /** Whether the rule holds for a file. */
  readonly holds: (path: string) => boolean;
  readonly where: 'code' | 'comments';
}

const everywhere = () => true;
const outsideBase = (path: string) => isProduct(path) && !isIn(path, 'src/base');

const leftovers: readonly Leftover[] = [
  {
    pattern: /\b(?:test|it|describe|suite)\.only\(|\bonly: true\b/g,
    meaning: 'runs one test only',
    holds: everywhere,
    where: 'code',
  },
  { pattern: /\bconsole\./g, meaning: 'writes to the console', holds: everywhere, where: 'code' },
  {
    pattern: /\b(?:TODO|FIXME|XXX)\b/g,
    meaning: 'leaves work for later',
    holds: everywhere,
    where: 'comments',
  },
  {
    pattern: /@ts-(?:ignore|nocheck)\b/g,
    meaning: 'silences the compiler',
    holds: everywhere,
    where: 'comments',
  },
  {
    pattern: /\b(?:Date\.now|performance\.now)\(|\bnew Date\(\)/g,
    meaning: 'takes the time from a global',
    holds: outsideBase,
    where: 'code',
  },
  { pattern: /\bMath\.random\(/g, meaning: 'takes chance from a global', holds: outsideBase, where: 'code' },
  {
    pattern: /\bset(?:Timeout|Interval)\(/g,
    meaning: 'waits by a global timer',
    holds: outsideBase,
    where: 'code',
  },
  {
    pattern: /[\w$)\]]!(?!=)/g,
    meaning: 'asserts that a value is not null',
    holds: everywhere,
    where: 'code',
  },
  {
    pattern: /\bas any\b|:\s*any\b(?!\()|<any>|\bany\[\]/g,
    meaning: 'gives up types with any',
    holds: isProduct,
    where: 'code',
  },
];

/** What must not stay in a finished file. */
export function leftoverProblems(files: Files): string[] {
  return [...files.values()].flatMap((file) =>
    leftovers
      .filter(({ holds }) => holds(file.path))
      .flatMap(({ pattern, meaning, where }) =>
        [...file[where].matchAll(pattern)].map(
          (match) => `${file.path}:${lineAt(file.code, match.index)}: ${meaning} (${match[0].trim()})`,
        ),
      ),
  );
}

/** A durable or public format as it is now. */
export interface FormatNow {
  readonly version: string;
  /** What version.ts says of it. */
  readonly history: readonly string[];
  /** The digest of the bytes that today's code makes of a fixed sample. */
  readonly digest: string;
}

export type FormatRecord = Readonly<Record<string, FormatNow>>;

/** A format that makes other bytes than recorded while version.ts says the same of it. */
export function formatProblems(now: FormatRecord, recorded: FormatRecord): string[] {
  const names = [...new Set([...Object.keys(now), ...Object.keys(recorded)])];
  return names.flatMap((name) => {
    const current = now[name];
    const before = recorded[name];
    if (current === undefined)
      return [`the format "${name}" is gone, and what it was written in could not be read`];
    if (before === undefined) return [`the format "${name}" is new: ${recording}`];
    const sameWords = isSameVersion(current, before);
    if (current.digest === before.digest) {
      return sameWords ? [] : [`version.ts says something new of "${name}": ${recording}`];
    }
    return sameWords
      ? [`the format "${name}" has changed: ${saying(name)} in protocol/version.ts, then ${recording}`]
      : [`the format "${name}" has a new version: ${recording}`];
  });
}

const recording = 'record it by `npm run build && UPDATE_GOLDEN=1 node dist/test/run.js tidy openapi`';

/** `wire` is all requests and answers; the others are the keys of `formats`. */
function saying(name: string): string {
  return name === 'wire'
    ? 'raise wireVersion, and add what is new to wireHistory,'
    : `raise formats.${name}.version, and add what is new to its history,`;
}

/** What UPDATE_GOLDEN=1 records: never a change about which version.ts is silent. */
export function recordedFormats(now: FormatRecord, recorded: FormatRecord): FormatRecord {
  return Object.fromEntries(
    Object.entries(now).map(([name, current]) => {
      const before = recorded[name];
      return [name, before !== undefined && isSameVersion(current, before) ? before : current];
    }),
  );
}

function isSameVersion(a: FormatNow, b: FormatNow): boolean {
  return a.version === b.version && a.history.join('\n') === b.history.join('\n');
}
