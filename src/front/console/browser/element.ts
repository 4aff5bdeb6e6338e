/**
 * The one way in which these pages make elements. Data becomes text nodes and attribute values, never markup: nothing here
 * or anywhere else parses HTML, which the pages' Trusted Types policy makes the browser hold us to.
 */
export type Child = Node | string | number | null | readonly Child[];
export type Attributes = Readonly<Record<string, string | number | boolean | null>>;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  return filled(document.createElement(name), attributes, children);
}

export function svg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function filled<Made extends Element>(made: Made, attributes: Attributes, children: readonly Child[]): Made {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) continue;
    made.setAttribute(name, value === true ? '' : String(value));
  }
  append(made, children);
  return made;
}

function append(parent: Element, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null) continue;
    if (Array.isArray(child)) append(parent, child as readonly Child[]);
    else parent.append(child instanceof Node ? child : String(child));
  }
}

/** Empties an element and fills it anew. */
export function refill(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

export function onClick<Made extends HTMLElement>(made: Made, run: (event: MouseEvent) => void): Made {
  made.addEventListener('click', run);
  return made;
}

let identities = 0;

/** An id that nothing else on the page has. */
export function newId(word: string): string {
  identities += 1;
  return `${word}-${identities}`;
}
