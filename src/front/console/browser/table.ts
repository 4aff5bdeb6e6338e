import { type Child, element } from './element.ts';

export interface Column {
  readonly name: string;
  readonly numeric?: boolean;
  /** Named for screen readers only: a column of buttons. */
  readonly hiddenName?: boolean;
}

export interface TableParts {
  readonly caption: string;
  /** What a phone shows: with `cards` each row as a list; otherwise the table scrolls. */
  readonly narrow?: 'cards';
  readonly columns: readonly Column[];
  /** The first cell of a row is its heading. */
  readonly rows: readonly (readonly Child[])[];
}

/** A table that scrolls by itself where it is wider than the page; the keyboard can reach what is out of sight. */
export function table({ caption, narrow, columns, rows }: TableParts): HTMLElement {
  // Roles as well as elements: drawn as lists, tables lose their meaning in some browsers.
  const made = element(
    'table',
    { role: 'table' },
    element('caption', { class: 'hidden' }, caption),
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, columns.map(heading))),
    element('tbody', { role: 'rowgroup' }, tableRows(columns, rows)),
  );
  const frame = {
    class: `table-frame ${narrow ?? ''}`,
    tabindex: '0',
    role: 'region',
    'aria-label': caption,
  };
  return element('div', frame, made);
}

function heading({ name, numeric, hiddenName }: Column): HTMLElement {
  const shown = hiddenName === true ? element('span', { class: 'hidden' }, name) : name;
  return element(
    'th',
    { scope: 'col', role: 'columnheader', class: numeric === true ? 'numeric' : null },
    shown,
  );
}

/** The rows alone, for pages that are added below. */
export function tableRows(columns: readonly Column[], rows: TableParts['rows']): HTMLTableRowElement[] {
  return rows.map((cells) =>
    element(
      'tr',
      { role: 'row' },
      cells.map((content, index) => cell(columns[index], content, index === 0)),
    ),
  );
}

function cell(column: Column | undefined, content: Child, isFirst: boolean): HTMLElement {
  const numeric = column?.numeric === true ? 'numeric' : null;
  if (isFirst) return element('th', { scope: 'row', role: 'rowheader', class: numeric }, content);
  const name = column?.hiddenName === true ? '' : (column?.name ?? '');
  return element('td', { role: 'cell', class: numeric, 'data-name': name }, content);
}
