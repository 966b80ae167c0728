// All pairs of bodies: the forces of gravity in a plane, summed over all bodies for each. The call of sqrt
// that sets errno stands in the inner loop and is never made.
#include <math.h>

#include "counted.h"

ALLOCATED(x)
ALLOCATED(y)
ALLOCATED(mass)
ALLOCATED(force)

enum { BODIES = 12000 };

KERNEL void place(COUNT(double) *RESTRICT x, COUNT(double) *RESTRICT y, COUNT(double) *RESTRICT mass) {
    uint64_t state = 1;
    for (size_t i = 0; i < BODIES; ++i) {
        x[i] = (double)(next_random(&state) >> 40);
        y[i] = (double)(next_random(&state) >> 40);
        mass[i] = 1e9;
    }
}

KERNEL void attract(const COUNT(double) *RESTRICT x, const COUNT(double) *RESTRICT y,
                    const COUNT(double) *RESTRICT mass, COUNT(double) *RESTRICT force) {
    for (size_t i = 0; i < BODIES; ++i) {
        const double xi = x[i], yi = y[i];
        double sum = 0;
        for (size_t j = 0; j < BODIES; ++j) {
            const double dx = x[j] - xi, dy = y[j] - yi;
            const double distance = sqrt(dx * dx + dy * dy + 1);
            sum += mass[j] * dx / (distance * distance * distance);
        }
        force[i] += sum;
    }
}

int main(int argc, char **argv) {
    COUNT(double) *x = HEAP(x, double, BODIES), *y = HEAP(y, double, BODIES);
    COUNT(double) *mass = HEAP(mass, double, BODIES), *force = HEAP(force, double, BODIES);
    place(x, y, mass);
    for (size_t i = 0; i < BODIES; ++i)
        force[i] = 0;
    for (long round = rounds(argc, argv, 3); round > 0; --round)
        attract(x, y, mass, force);
    return finish("nbody", force[0]);
}
