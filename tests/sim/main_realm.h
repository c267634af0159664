/* cheops-sim-cross, with --realm: another world. */
#ifndef SIM_MAIN_REALM_H
#define SIM_MAIN_REALM_H

int main_realm(int argc, char **argv);

#endif
