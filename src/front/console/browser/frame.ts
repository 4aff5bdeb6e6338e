/** What stands around a page: landmarks, the way to the others, and where one is. */
import { type App, consoleLink, type View } from './app.ts';
import { brand } from './brand.ts';
import { type Child, element, onClick } from './element.ts';
import { verificationBanner } from './verification-banner.ts';

export const consolePages = [
  { page: 'overview', name: 'Overview' },
  { page: 'namespaces', name: 'Namespaces' },
  { page: 'search', name: 'Search' },
  { page: 'sql', name: 'SQL' },
  { page: 'keys', name: 'API keys' },
  { page: 'connections', name: 'Connections' },
  { page: 'usage', name: 'Usage' },
  { page: 'billing', name: 'Billing' },
  { page: 'account', name: 'Account' },
] as const;

export type ConsolePage = (typeof consolePages)[number]['page'];

export function publicFrame(view: View, isLoggedIn: boolean): Child {
  const way = isLoggedIn
    ? element('a', { href: '/console' }, 'Open the console')
    : element('a', { href: '/#/login' }, 'Log in');
  return element(
    'div',
    { class: 'public' },
    element(
      'header',
      { class: 'top' },
      brand('/'),
      element('nav', { 'aria-label': 'Pages' }, element('a', { href: '/openapi.json' }, 'OpenAPI'), way),
    ),
    element('main', { id: 'main' }, view.body),
    element(
      'footer',
      { class: 'foot' },
      element('p', {}, 'These pages call the public HTTP interface of this server, and nothing else.'),
    ),
  );
}

export function consoleFrame(app: App, current: ConsolePage, view: View): Child {
  const links = consolePages.map(({ page, name }) =>
    element(
      'li',
      {},
      element('a', { href: consoleLink(page), 'aria-current': page === current ? 'page' : null }, name),
    ),
  );
  const logOut = onClick(element('button', { type: 'button', class: 'quiet' }, 'Log out'), () =>
    app.logOut(),
  );
  return element(
    'div',
    { class: 'console' },
    element(
      'header',
      { class: 'side' },
      brand('/console'),
      tenantSwitcher(app),
      element('nav', { 'aria-label': 'Console' }, element('ul', {}, links)),
      element('div', { class: 'who' }, element('p', {}, app.me.person?.email ?? ''), logOut),
    ),
    element('main', { id: 'main' }, verificationBanner(app), view.body),
  );
}

/** Lets a person choose a tenant; where there is only one, its name is enough. */
function tenantSwitcher(app: App): Child {
  if (app.tenants.length < 2) return element('p', { class: 'tenant' }, app.me.tenant.name);
  const select = element(
    'select',
    { 'aria-label': 'Tenant', class: 'tenant' },
    app.tenants.map(({ id, name }) =>
      element('option', { value: id, selected: id === app.me.tenant_id }, name),
    ),
  );
  select.addEventListener('change', () => {
    const chosen = app.tenants.find(({ id }) => String(id) === select.value);
    if (chosen !== undefined) void app.actFor(chosen);
  });
  return select;
}
