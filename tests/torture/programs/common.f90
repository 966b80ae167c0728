! Arrays in COMMON, in a module, on the heap and automatic ones.
module grid
    real(8), save :: field(200000)
end module grid

subroutine smooth(n, steps)
    use grid
    implicit none
    integer, intent(in) :: n, steps
    real(8) :: table(100000)
    common /shared/ table
    real(8) :: automatic(n)
    integer :: step
    do step = 1, steps
        automatic = field(1:n) + table(1:n)
        field(1:n) = automatic * 0.5d0
    end do
end subroutine smooth

program arrays
    use grid
    implicit none
    real(8) :: table(100000)
    common /shared/ table
    real(8), allocatable :: heap(:, :)
    integer :: i
    allocate (heap(1000, 500))
    heap = 1.0d0
    table = [(real(i, 8), i = 1, 100000)]
    field = 0.0d0
    call smooth(50000, 50)
    write (*, '(F20.6, F20.6)') sum(field), sum(heap)
    deallocate (heap)
    stop 6
end program arrays
