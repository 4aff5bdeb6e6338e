import { element, svg } from './element.ts';

export function brand(href: string): HTMLElement {
  return element('a', { href, class: 'brand' }, mark(), element('span', {}, 'Tidebase'));
}

/** Two waves; beside the name, so it says nothing of its own. */
function mark(): SVGElement {
  const wave = (y: number) => `M3 ${y}c3-3 6-3 9 0s6 3 9 0`;
  return svg(
    'svg',
    { viewBox: '0 0 24 24', width: 26, height: 26, 'aria-hidden': 'true', class: 'mark' },
    svg('rect', { width: 24, height: 24, rx: 6 }),
    svg('path', { d: wave(10) }),
    svg('path', { d: wave(15.5) }),
  );
}
