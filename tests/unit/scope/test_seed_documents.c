/* Every scope expression printed in the documents that Cheops comes from is accepted, and means what they say.
 *
 * The documents, by the numbers of the table:
 *   0  Cherrueau, Delavergne, Lebre: Geo-Distribute Cloud Applications at the Edge, Euro-Par 2021
 *   1  Delavergne, Antony, Lebre: Cheops, a service to blow away Cloud applications to the Edge, RR-9486, 2022
 *   2  Delavergne: Cheops, a service-mesh to geo-distribute micro-service applications at the Edge, thesis, 2023
 *   3  Cherrueau et al.: Edge Computing Resource Management System: two years later, RR-9336, 2020
 *   4  Lebre et al.: Revising OpenStack to Operate Fog/Edge Computing Infrastructures, IC2E 2017 (prints none)
 *
 * Typeset subscripts are written as `_1` or `1`, as the document's own listings do. Left out are grammar rules, whose
 * `Loc`, σ and `Loc'` stand for any location, and the type annotations `Site2/Network` of 2 §11.2 and 3 §4, which are
 * not scopes.
 */
#include "scope_test.h"

struct row {
	int document;
	const char *section;
	const char *text;
	const char *canonical;
};

static const struct row rows[] = {
	{0, "3.2", "s : App1 , t : App2", "s: App1, t: App2"},
	{0, "3.2", "t : App1&App2", "t: App1 & App2"},
	{0, "3.2, Fig. 6b", "s : Appi , t : Appi", "s: Appi, t: Appi"},
	{0, "3.2, stage 1", "s:Appi ,t:Appi", "s: Appi, t: Appi"},
	{0, "3.2, Fig. 6a", "s : Appi", "s: Appi"},
	{0, "3.2, Fig. 6a", "s : Loc&Loc2", "s: Loc & Loc2"},
	{0, "3.3", "s:App1 ,t:App2", "s: App1, t: App2"},
	{0, "3.3, Fig. 8", "s : App1 , t : App2", "s: App1, t: App2"},
	{0, "3.3, Fig. 8", "t : App2", "t: App2"},
	{0, "3.4", "t : App1&App2", "t: App1 & App2"},
	{0, "3.4, step 1", "t:App1&App2", "t: App1 & App2"},
	{0, "3.5", "Loc1;Loc2", "Loc1; Loc2"},
	{0, "3.5, Fig. 10a", "s : Loc1;Loc2", "s: Loc1; Loc2"},
	{0, "3.5", "around(App1, 10ms)", "around(App1, 10ms)"},
	{0, "3.5, Fig. 10b", "App1;App2 ;...; Appn", "App1; App2; ...; Appn"},
	{0, "4, Cmd. 2", "{ compute: DC 1, image: DC 1 }", "compute: \"DC 1\", image: \"DC 1\""},
	{0, "4, Cmd. 3", "{ compute: DC 1, image: DC 2 }", "compute: \"DC 1\", image: \"DC 2\""},
	{0, "4, Cmd. 4", "{ image: DC 1 & DC 2 }", "image: \"DC 1\" & \"DC 2\""},
	{1, "3.1", "s : App_1, t : App_2", "s: App_1, t: App_2"},
	{1, "3.1, Figure 1", "s : App_i", "s: App_i"},
	{1, "3.2.1", "{A: Site1, B: Site2}", "A: Site1, B: Site2"},
	{1, "3.2.2", "{A: Site1 & Site2}", "A: Site1 & Site2"},
	{1, "3.2.3", "{A: Site1% Site2}", "A: Site1 % Site2"},
	{1, "Table 1", "{Site1&Site2}", "Site1 & Site2"},
	{1, "Table 2", "{Site1%Site2}", "Site1 % Site2"},
	{1, "Table 2", "{Site1}", "Site1"},
	{1, "Table 2", "{Site2}", "Site2"},
	{2, "8.2", "s: App_1, t: App_2", "s: App_1, t: App_2"},
	{2, "8.2", "t: App_1 & App_2", "t: App_1 & App_2"},
	{2, "8.2, Figure 8.6", "s:App_i,t:App_i", "s: App_i, t: App_i"},
	{2, "8.2, step 2", "s: App_i, t: App_i", "s: App_i, t: App_i"},
	{2, "8.3.1", "s:App_1,t:App_2", "s: App_1, t: App_2"},
	{2, "8.3.2", "t : App_1 & App_2", "t: App_1 & App_2"},
	{2, "8.3.2, step 1", "t:App_1&App_2", "t: App_1 & App_2"},
	{2, "8.3.4", "Loc_1 ; Loc_2", "Loc_1; Loc_2"},
	{2, "8.3.4, Figure 8.9", "s: Loc_1; Loc_2", "s: Loc_1; Loc_2"},
	{2, "8.3.4", "around(App_1, 10ms)", "around(App_1, 10ms)"},
	{2, "8.3.4, Figure 8.10", "App1; App2; ...; Appn", "App1; App2; ...; Appn"},
	{2, "9.1.1, sharing", "{A: Site_1, B: Site_2 }", "A: Site_1, B: Site_2"},
	{2, "9.1.1, replication", "{Service A: Site_1 & Site_2 }", "\"Service A\": Site_1 & Site_2"},
	{2, "9.1.1, cross", "{Service A: Site_1 % Site_2 }", "\"Service A\": Site_1 % Site_2"},
	{2, "9.3, Table 9.1", "{Site1&Site2}", "Site1 & Site2"},
	{2, "11.2", "{ compute: Site1, network: Site2 }", "compute: Site1, network: Site2"},
	{2, "12", "ServiceB/Site2", "ServiceB: Site2"},
	{3, "3.1", "{ compute: Site1 , image: Site2 }", "compute: Site1, image: Site2"},
	{3, "3.1", "{ compute: Site1&Site2 }", "compute: Site1 & Site2"},
	{3, "3.1", "{ compute: Site1 , image: Site1|Site2 }", "compute: Site1, image: Site1 | Site2"},
	{3, "3.1", "{ compute: Site1 , \\\n\nimage: around(Site1 , 10ms) }", "compute: Site1, image: around(Site1, 10ms)"},
	{3, "3.2", "{ glance: Site1&Site2&Site3 }", "glance: Site1 & Site2 & Site3"},
	{3, "4", "{ compute: Site1 , network: Site2 }", "compute: Site1, network: Site2"},
};

static void test_every_printed_scope_is_accepted(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome outcome = outcome_parse(str_of(rows[i].text));
		if (outcome.code)
			fail_msg("document %d, section %s: %s: %s", rows[i].document, rows[i].section, rows[i].text,
			         outcome.diag.message);
		assert_string_equal(buf_c(&outcome.canonical), rows[i].canonical);
		outcome_free(&outcome);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_printed_scope_is_accepted)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
