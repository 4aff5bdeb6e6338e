/** Reads Prometheus' text format as strictly as its description is written. Throws where a line, or a family, is not as it must be. */
import assert from 'node:assert/strict';

export interface ReadFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly ReadSample[];
}

export interface ReadSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function readExposition(text: string): ReadonlyMap<string, ReadFamily> {
  assert.ok(text.endsWith('\n'), 'the last line has no end');
  const families = new Map<string, ReadFamily & { readonly samples: ReadSample[] }>();
  let current: (ReadFamily & { readonly samples: ReadSample[] }) | null = null;
  let help: readonly string[] = [];
  for (const line of text.slice(0, -1).split('\n')) {
    const helpLine = /^# HELP ([a-zA-Z_:][\w:]*) ((?:[^\\]|\\\\|\\n)+)$/.exec(line);
    const typeLine = /^# TYPE ([a-zA-Z_:][\w:]*) (counter|gauge|histogram|summary)$/.exec(line);
    if (helpLine !== null) help = helpLine.slice(1);
    else if (typeLine !== null) {
      const [, name = '', type = ''] = typeLine;
      assert.equal(help[0], name, `HELP stands before TYPE: ${line}`);
      assert.ok(!families.has(name), `${name} comes once`);
      current = { name, type, help: help[1] ?? '', samples: [] };
      families.set(name, current);
    } else {
      const sample = readSample(line);
      assert.ok(current !== null && belongs(sample.name, current), `${line} is of no family above it`);
      current.samples.push(sample);
    }
  }
  for (const family of families.values()) checkFamily(family);
  return families;
}

function readSample(line: string): ReadSample {
  const [, name = '', labelText, valueText = ''] =
    /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? ([+-]?(?:Inf|[\d.]+(?:e[+-]?\d+)?)|NaN)$/.exec(line) ??
    assert.fail(line);
  const labels: Record<string, string> = {};
  const pair = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)/y;
  for (let at = 0; labelText !== undefined && at < labelText.length; at = pair.lastIndex) {
    pair.lastIndex = at;
    const [, label = '', value = ''] = pair.exec(labelText) ?? assert.fail(`labels: ${line}`);
    assert.ok(!Object.hasOwn(labels, label), `${label} comes twice: ${line}`);
    labels[label] = value.replace(/\\(.)/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped));
  }
  return { name, labels, value: Number(valueText.replace('Inf', 'Infinity')) };
}

function belongs(name: string, { name: family, type }: ReadFamily): boolean {
  if (type === 'summary' && name === family) return true;
  if (type !== 'histogram' && type !== 'summary') return name === family;
  return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name);
}

/** The conventions of names, no sample twice, and histograms whose buckets rise to their count. */
function checkFamily({ name, type, samples, help }: ReadFamily): void {
  assert.ok(samples.length > 0, `${name} has no sample`);
  assert.match(help, /^[A-Z].*\.$/, `${name} has a sentence`);
  assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`);
  const seen = new Set(samples.map((sample) => JSON.stringify([sample.name, sample.labels])));
  assert.equal(seen.size, samples.length, `${name} has a sample twice`);
  for (const { value } of samples) assert.ok(type === 'gauge' || value >= 0, name);
  if (type !== 'histogram') return;
  for (const count of samples.filter((sample) => sample.name.endsWith('_count'))) {
    const buckets = samples.filter(
      (sample) =>
        sample.name.endsWith('_bucket') &&
        Object.entries(count.labels).every(([label, value]) => sample.labels[label] === value),
    );
    const bounds = buckets.map(({ labels }) => Number(labels.le?.replace('Inf', 'Infinity')));
    assert.deepEqual(
      bounds,
      bounds.toSorted((a, b) => a - b),
      name,
    );
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, name);
    const counts = buckets.map(({ value }) => value);
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => a - b),
      name,
    );
    assert.equal(counts.at(-1), count.value, name);
  }
}

/** The value of the one sample with these labels, or null. */
export function sampleValue(
  families: ReadonlyMap<string, ReadFamily>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null {
  const family = families.get(name.replace(/_(bucket|sum|count)$/, '')) ?? families.get(name);
  const found = family?.samples.filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value) &&
      Object.keys(sample.labels).length === Object.keys(labels).length,
  );
  assert.ok((found?.length ?? 0) <= 1, name);
  return found?.[0]?.value ?? null;
}
