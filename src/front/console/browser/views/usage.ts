import { type Allowance, allowancesOf } from '../allowances.ts';
import { call } from '../api.ts';
import type { App, View } from '../app.ts';
import { chart } from '../chart.ts';
import type { ChartPlan } from '../chart-plan.ts';
import { type Child, element, refill } from '../element.ts';
import { choiceField } from '../fields.ts';
import { formatBytes, formatDay, formatNumber } from '../format.ts';
import { heading } from '../heading.ts';
import { loaded } from '../notices.ts';
import type { Usage } from '../shapes.ts';
import { table } from '../table.ts';

/** The period so far: by day, and against the plan's allowances. */
export function usageView(app: App): View {
  const load = () => call<Usage>('GET', '/v1/usage?days=true');
  return {
    title: 'Usage',
    body: [
      heading('Usage', `What ${app.me.tenant.name} used in this period, in UTC days.`),
      loaded(load, (usage) => [byDay(usage), allowances(app, usage)]),
    ],
  };
}

const measures = [
  { value: 'queries', label: 'Queries', format: formatNumber },
  { value: 'writes', label: 'Writes', format: formatNumber },
  { value: 'write_bytes', label: 'Bytes written', format: formatBytes },
  { value: 'stored_bytes', label: 'Stored', format: formatBytes },
] as const;

type Measure = (typeof measures)[number];

function byDay({ days = [] }: Usage): Child {
  const place = element('div', {});
  const choice = choiceField({ name: 'measure', label: 'Measure' }, measures, 'queries');
  const show = (): void => {
    const measure = measures.find(({ value }) => value === choice.read()) ?? measures[0];
    refill(place, chart(dayPlan(days, measure), measure.format), dayTable(days, measure));
  };
  choice.node.addEventListener('change', show);
  show();
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'by-day' },
    element('div', { class: 'card-head' }, element('h2', { id: 'by-day' }, 'By day'), choice.node),
    place,
  );
}

type Days = NonNullable<Usage['days']>;

function dayPlan(days: Days, measure: Measure): ChartPlan {
  return {
    kind: 'columns',
    labelName: 'day',
    valueName: measure.label,
    points: days.map((day) => ({ label: formatDay(day.day), value: day[measure.value] })),
    omitted: 0,
  };
}

function dayTable(days: Days, measure: Measure): Child {
  return element(
    'details',
    {},
    element('summary', {}, 'As a table'),
    table({
      caption: `${measure.label} by day`,
      columns: [{ name: 'Day' }, { name: measure.label, numeric: true }],
      rows: days.map((day) => [day.day, measure.format(day[measure.value])]),
    }),
  );
}

function allowances(app: App, usage: Usage): Child {
  const share = app.me.person?.verified === false ? (usage.plan.unverified_share ?? 1) : 1;
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'allowances' },
    element('h2', { id: 'allowances' }, `Included in the ${usage.plan.name} plan`),
    element('ul', { class: 'meters' }, allowancesOf(usage, share).map(meter)),
  );
}

function meter({ name, used, included, format }: Allowance): HTMLElement {
  const words = included === null ? `${format(used)}, no limit` : `${format(used)} of ${format(included)}`;
  const part = included === null || included === 0 ? 0 : Math.min(1, used / included);
  const fill = element('div', { class: part >= 1 ? 'fill full' : part >= 0.8 ? 'fill nearly' : 'fill' });
  fill.style.width = part === 0 ? '0' : `max(3px, ${(part * 100).toFixed(1)}%)`;
  // The words say it all: the bar is for the eye.
  return element(
    'li',
    {},
    element('span', {}, name),
    element('span', { class: 'muted' }, words),
    element('div', { class: 'bar', 'aria-hidden': 'true' }, fill),
  );
}
