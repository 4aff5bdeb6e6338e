/**
 * From the address to a page: every path has the same document, and what follows the # says which part of it. Each page is
 * made anew when it is shown; only who is logged in is kept between them.
 */
import { announce } from './announce.ts';
import { call, messageOf, Refusal, whenLoginEnds } from './api.ts';
import type { App, ConsoleView, View } from './app.ts';
import { type Child, element, refill } from './element.ts';
import { type ConsolePage, consoleFrame, consolePages, publicFrame } from './frame.ts';
import { notice } from './notices.ts';
import { session } from './session.ts';
import type { Me, Tenant } from './shapes.ts';
import { accountView } from './views/account.ts';
import { billingView } from './views/billing.ts';
import { connectionsView } from './views/connections.ts';
import { forgotView } from './views/forgot.ts';
import { keysView } from './views/keys.ts';
import { loginView } from './views/login.ts';
import { namespacesView } from './views/namespaces.ts';
import { overviewView } from './views/overview.ts';
import { resetView } from './views/reset.ts';
import { searchView } from './views/search.ts';
import { sqlView } from './views/sql.ts';
import { usageView } from './views/usage.ts';
import { verifyView } from './views/verify.ts';
import { welcomeView } from './views/welcome.ts';

const consoleViews: Readonly<Record<ConsolePage, ConsoleView>> = {
  overview: overviewView,
  namespaces: namespacesView,
  search: searchView,
  sql: sqlView,
  keys: keysView,
  connections: connectionsView,
  usage: usageView,
  billing: billingView,
  account: accountView,
};

interface Identity {
  readonly me: Me;
  readonly tenants: readonly Tenant[];
}

let identity: Identity | null = null;
let firstKey: string | null = null;
/** Why somebody who was logged in is asked to log in. */
let loginReason: string | null = null;
const linkToken = takeLinkToken();

/**
 * The token of a mail's link leaves the address at once, so that neither the history, a shared screen nor a copied address
 * keeps it. It stays in memory: after a reload the link has to be opened again.
 */
function takeLinkToken(): string | null {
  const token = new URLSearchParams(location.search).get('token');
  if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash);
  return token;
}

function go(to: string): void {
  history.pushState(null, '', to);
  void show(true);
}

function begin(token: string, key: string | null): void {
  session.begin(token);
  identity = null;
  loginReason = null;
  firstKey = key;
  go(location.pathname === '/console' ? location.href : '/console');
}

function end(reason: string | null): void {
  session.end();
  identity = null;
  firstKey = null;
  loginReason = reason;
}

function publicView(): View {
  const part = location.hash.slice(1);
  if (location.pathname === '/verify') return verifyView(linkToken);
  if (location.pathname === '/reset') return resetView(linkToken, () => end(null));
  if (part === '/forgot') return forgotView();
  if (part === '/login' || location.pathname === '/console') return loginView(begin, loginReason);
  return welcomeView(begin, session.token !== null);
}

async function show(moveFocus: boolean): Promise<void> {
  const address = location.href;
  if (location.pathname !== '/console' || session.token === null) {
    const view = publicView();
    return put(view, publicFrame(view, session.token !== null), moveFocus);
  }
  try {
    identity ??= await identify();
  } catch (error) {
    // Where the login has ended, the page to log in is there already.
    if (session.token !== null) putProblem(messageOf(error));
    return;
  }
  // Somebody has gone on meanwhile.
  if (location.href !== address) return;
  const app = appOf(identity);
  const [name, query] = location.hash.replace(/^#\//, '').split('?');
  const page = consolePages.find((known) => known.page === name)?.page ?? 'overview';
  const view = consoleViews[page](app, new URLSearchParams(query));
  put(view, consoleFrame(app, page, view), moveFocus);
}

async function identify(): Promise<Identity> {
  const me = await call<Me>('GET', '/v1/me').catch((error: unknown) => {
    if (!(error instanceof Refusal) || error.status !== 404 || session.tenant === null) throw error;
    // The tenant that was chosen is gone: back to the person's own.
    session.actForOwn();
    return call<Me>('GET', '/v1/me');
  });
  // Nothing but this, the bill and the ways to pay it is answered to a suspended tenant.
  const tenants = me.tenant.status === 'suspended' ? [me.tenant] : await call<Tenant[]>('GET', '/v1/tenants');
  return { me, tenants };
}

function appOf({ me, tenants }: Identity): App {
  return {
    me,
    tenants,
    firstKey,
    go,
    async refresh() {
      identity = await identify();
      await show(true);
    },
    async actFor({ id, name }) {
      session.actFor(id);
      identity = null;
      firstKey = null;
      // What was chosen in one tenant may not be there in another.
      history.pushState(null, '', '/console');
      await show(false);
      // Where the choice was made by arrow keys the next one may follow.
      document.querySelector<HTMLElement>('select.tenant')?.focus();
      announce(`Acting for ${name}`);
    },
    logOut() {
      end(null);
      go('/#/login');
      announce('You are logged out');
    },
  };
}

function page(): HTMLElement {
  const found = document.getElementById('page');
  if (found === null) throw new Error('the document has no place for a page');
  return found;
}

function put(view: View, content: Child, moveFocus: boolean): void {
  document.title = `${view.title} – Tidebase`;
  // What was asked on the page before is no question any more.
  for (const dialog of document.querySelectorAll('dialog')) dialog.remove();
  refill(page(), content);
  document.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (!moveFocus) return;
  scrollTo(0, 0);
  document.querySelector('h1')?.focus({ preventScroll: true });
}

function putProblem(text: string): void {
  const view = { title: 'Problem', body: notice('danger', element('p', {}, text)) };
  put(view, publicFrame(view, true), true);
}

whenLoginEnds(() => {
  end('Your login has ended. Log in again to go on.');
  void show(true);
});
addEventListener('popstate', () => void show(true));
document.querySelector('.skip')?.addEventListener('click', (event) => {
  // Its address must not become that of a page.
  event.preventDefault();
  const main = document.getElementById('main');
  main?.setAttribute('tabindex', '-1');
  main?.focus();
});
void show(false);
