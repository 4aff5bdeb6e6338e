/**
 * Who is logged in, and for which tenant, in sessionStorage: it ends with the tab, no other site and no request carries it
 * along by itself (so there is nothing to forge across sites, as with a cookie), and a reload keeps it. A script of somebody
 * else's on this page could read it, which is why there can be none: the pages' policy allows scripts of this server only,
 * and nothing is ever parsed as markup. The token is an ordinary one of the public interface, for one day.
 */
const tokenName = 'tidebase.token';
const tenantName = 'tidebase.tenant';

export const session = {
  get token(): string | null {
    return sessionStorage.getItem(tokenName);
  },
  /** Null: the person's own. */
  get tenant(): number | null {
    const kept = sessionStorage.getItem(tenantName);
    return kept === null ? null : Number(kept);
  },
  begin(token: string): void {
    sessionStorage.removeItem(tenantName);
    sessionStorage.setItem(tokenName, token);
  },
  actFor(tenant: number): void {
    sessionStorage.setItem(tenantName, String(tenant));
  },
  /** Acts for the person's own tenant again. */
  actForOwn(): void {
    sessionStorage.removeItem(tenantName);
  },
  end(): void {
    sessionStorage.removeItem(tokenName);
    sessionStorage.removeItem(tenantName);
  },
};
