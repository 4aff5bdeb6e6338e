/**
 * Prometheus' text format. Families are made anew for each scrape, from counters that their owners keep: counting stays as
 * cheap as its owner makes it (see src/front/request-metrics.ts), and nothing is registered anywhere.
 */
export interface Family {
  readonly name: string;
  /** One sentence without a full stop. */
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  /** What follows the name in a histogram or summary: `_bucket`, `_sum`, `_count`. */
  readonly suffix?: string;
}

export type Labels = Readonly<Record<string, string | number>>;

export function counter(name: string, help: string, samples: readonly Sample[] | number): Family {
  return { name, help, type: 'counter', samples: samplesOf(samples) };
}

export function gauge(name: string, help: string, samples: readonly Sample[] | number): Family {
  return { name, help, type: 'gauge', samples: samplesOf(samples) };
}

function samplesOf(samples: readonly Sample[] | number): readonly Sample[] {
  return typeof samples === 'number' ? [{ value: samples }] : samples;
}

export interface HistogramCounts {
  readonly labels: Labels;
  /** By bound, and one more for what is over the last one; each value is in one of them. */
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

export function histogram(
  name: string,
  help: string,
  bounds: readonly number[],
  all: readonly HistogramCounts[],
): Family {
  const samples = all.flatMap(({ labels, counts, sum }) => {
    let total = 0;
    const buckets = [...bounds, Number.POSITIVE_INFINITY].map((bound, at): Sample => {
      total += counts[at] ?? 0;
      return { suffix: '_bucket', labels: { ...labels, le: valueText(bound) }, value: total };
    });
    return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }];
  });
  return { name, help, type: 'histogram', samples };
}

export interface Summary {
  /** Values by quantile, of a window that the family's help names; 1 is the largest. */
  readonly quantiles: readonly { readonly quantile: number; readonly value: number }[];
  /** Since the start. */
  readonly sum: number;
  readonly count: number;
}

export function summary(name: string, help: string, { quantiles, sum, count }: Summary): Family {
  const samples: Sample[] = quantiles.map(({ quantile, value }) => ({ labels: { quantile }, value }));
  return {
    name,
    help,
    type: 'summary',
    samples: [...samples, { suffix: '_sum', value: sum }, { suffix: '_count', value: count }],
  };
}

/** Families without samples are left out. */
export function exposition(families: readonly Family[]): string {
  return families.map(familyText).join('');
}

function familyText({ name, help, type, samples }: Family): string {
  if (samples.length === 0) return '';
  const lines = samples.map(
    ({ suffix = '', labels = {}, value }) => `${name}${suffix}${labelText(labels)} ${valueText(value)}\n`,
  );
  return `# HELP ${name} ${escaped(help)}.\n# TYPE ${name} ${type}\n${lines.join('')}`;
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(String(value)).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function valueText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf';
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);
}
