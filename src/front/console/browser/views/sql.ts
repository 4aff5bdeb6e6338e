/** Metadata as a table, and a picture of it where its first columns make one. */
import { announce } from '../announce.ts';
import { call, namespacePath } from '../api.ts';
import type { App, View, ViewParameters } from '../app.ts';
import { chart } from '../chart.ts';
import { planChart } from '../chart-plan.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { textArea, textField } from '../fields.ts';
import { form } from '../form.ts';
import { formatPrecise, plural } from '../format.ts';
import { heading } from '../heading.ts';
import { answerOrNothing, empty, notice } from '../notices.ts';
import type { SqlAnswer } from '../shapes.ts';
import { type Column, table, tableRows } from '../table.ts';
import { offerNamespaces } from './namespaces.ts';

const examples = [
  'SHOW COLUMNS',
  'SELECT COUNT(*) AS documents FROM docs',
  'SELECT * FROM docs LIMIT 20',
] as const;

export function sqlView(_app: App, parameters: ViewParameters): View {
  const results = element('section', { class: 'results', 'aria-label': 'Results' });
  const namespace = textField(
    { name: 'namespace', label: 'Namespace' },
    { value: parameters.get('namespace') ?? '', autocomplete: 'off', spellcheck: 'false', required: true },
  );
  const statement = textArea(
    { name: 'sql', label: 'Statement', hint: 'One SELECT over docs. Ctrl+Enter runs it.' },
    { rows: 5, class: 'code' },
    examples[0],
  );
  const asking = form({
    fields: [namespace, statement],
    submit: 'Run',
    beside: exampleButtons(statement.node, () => asking.requestSubmit()),
    async send(values) {
      const path = `${namespacePath(values.namespace ?? '')}/sql`;
      const answered = await answerOrNothing(results, call<SqlAnswer>('POST', path, { sql: values.sql }));
      refill(results, answer(answered));
      announce(`${plural(answered.rows.length, 'row')} below`);
    },
  });
  asking.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) asking.requestSubmit();
  });
  offerNamespaces(namespace.node);
  return {
    title: 'SQL',
    body: [
      heading('SQL', 'Every metadata key is a column of docs; contains() and grep() match texts.'),
      element('section', { class: 'card', 'aria-label': 'Question' }, asking),
      results,
    ],
  };
}

function exampleButtons(place: HTMLElement, run: () => void): Child {
  return element(
    'div',
    { class: 'examples', role: 'group', 'aria-label': 'Examples' },
    examples.map((text) =>
      onClick(element('button', { type: 'button', class: 'example' }, text), () => {
        const area = place.querySelector('textarea');
        if (area !== null) area.value = text;
        run();
      }),
    ),
  );
}

/** Rows that a page shows at once: ten thousand would make it slow. */
const rowsShown = 100;

function answer({ columns, types, rows, truncated, took_ms, temperature }: SqlAnswer): Child {
  const head = element(
    'p',
    { class: 'muted' },
    `${plural(rows.length, 'row')}, ${formatPrecise(took_ms)} ms, ${temperature}`,
  );
  if (rows.length === 0) return [head, empty('No rows')];
  const shown: Column[] = columns.map((name, index) => ({
    name,
    numeric: types[index] === 'int' || types[index] === 'float',
  }));
  const cells = rows.map((row) => row.map(cell));
  const framed = table({ caption: 'Rows of the answer', columns: shown, rows: cells.slice(0, rowsShown) });
  return [
    element('h2', { class: 'hidden' }, 'Results'),
    head,
    truncated ? notice('warning', element('p', {}, 'There are more than these 10,000 rows.')) : null,
    picture({ columns, types, rows }),
    element('div', { class: 'card flush' }, framed, rest(framed, shown, cells)),
  ];
}

function cell(value: unknown): Child {
  return value === null ? element('span', { class: 'null' }, 'NULL') : String(value);
}

function rest(framed: HTMLElement, columns: readonly Column[], cells: readonly (readonly Child[])[]): Child {
  let from = rowsShown;
  if (cells.length <= from) return null;
  const more = element('button', { type: 'button', class: 'quiet' }, `Show ${rowsShown} more`);
  onClick(more, () => {
    framed.querySelector('tbody')?.append(...tableRows(columns, cells.slice(from, from + rowsShown)));
    from += rowsShown;
    more.hidden = from >= cells.length;
    announce('More rows below');
  });
  return element('div', { class: 'after-table' }, more);
}

function picture(answered: Pick<SqlAnswer, 'columns' | 'types' | 'rows'>): Child {
  const plan = planChart(answered);
  if (plan === null) return null;
  const omitted =
    plan.omitted === 0
      ? null
      : element('p', { class: 'muted' }, `Without ${plural(plan.omitted, 'more row')}.`);
  return element(
    'figure',
    { class: 'card' },
    element('figcaption', {}, `${plan.valueName} by ${plan.labelName}`),
    chart(plan),
    omitted,
  );
}
