import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { counter, exposition, gauge, histogram, summary } from '../../../src/base/exposition.ts';
import { readExposition, sampleValue } from '../../support/exposition.ts';

describe("Prometheus' text format", () => {
  it('has families with a sentence, a type and their samples', () => {
    const text = exposition([
      counter('gets_total', 'What was read', [{ labels: { kind: 'log' }, value: 3 }]),
      gauge('open', 'What is open', 2.5),
    ]);

    assert.equal(
      text,
      '# HELP gets_total What was read.\n# TYPE gets_total counter\ngets_total{kind="log"} 3\n' +
        '# HELP open What is open.\n# TYPE open gauge\nopen 2.5\n',
    );
  });

  it('escapes what would end a label or a line', () => {
    const kind = 'a"b\\c\nd';

    const read = readExposition(
      exposition([counter('gets_total', 'What \\ was\nread', [{ labels: { kind }, value: 1 }])]),
    );

    assert.equal(sampleValue(read, 'gets_total', { kind }), 1);
  });

  it('counts a histogram upwards', () => {
    const labels = { operation: 'search' };
    const family = histogram(
      'took_seconds',
      'How long it took',
      [0.1, 1],
      [{ labels, counts: [2, 0, 1], sum: 5.3 }],
    );

    const read = readExposition(exposition([family]));

    const bucket = (le: string) => sampleValue(read, 'took_seconds_bucket', { ...labels, le });
    assert.deepEqual([bucket('0.1'), bucket('1'), bucket('+Inf')], [2, 2, 3]);
    assert.equal(sampleValue(read, 'took_seconds_sum', labels), 5.3);
    assert.equal(sampleValue(read, 'took_seconds_count', labels), 3);
  });

  it('has quantiles, sum and count of a summary', () => {
    const quantiles = [{ quantile: 0.5, value: 0.1 }];

    const text = exposition([summary('late_seconds', 'How late', { quantiles, sum: 3, count: 20 })]);

    assert.equal(
      text,
      '# HELP late_seconds How late.\n# TYPE late_seconds summary\n' +
        'late_seconds{quantile="0.5"} 0.1\nlate_seconds_sum 3\nlate_seconds_count 20\n',
    );
    assert.equal(sampleValue(readExposition(text), 'late_seconds', { quantile: '0.5' }), 0.1);
  });

  it('leaves out what has no sample', () => {
    assert.equal(exposition([counter('gets_total', 'What was read', [])]), '');
  });
});
